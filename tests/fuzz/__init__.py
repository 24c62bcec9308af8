"""Structure-aware fuzzing: generators of cases, and what may come of them."""
