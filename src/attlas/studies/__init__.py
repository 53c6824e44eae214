"""Studies: published experiments, run again on models and data of one's own."""

from attlas.studies.known import STUDIES, Study, list_studies, study

__all__ = ["STUDIES", "Study", "list_studies", "study"]
