"""What every room uses: errors, parameters, random numbers, files, figures, progress."""
