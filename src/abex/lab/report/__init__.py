"""The report: one HTML page with everything a store holds, which works offline from a file."""

from abex.lab.report.page import make_page, write_report

__all__ = ["make_page", "write_report"]
