"""Methods that were computed by what a measure does: judged so, they are held to themselves."""

from attlas.measures.support.measure import MEASURES

ALWAYS = {("tau_leave_one_out", "leave_one_out")}
REMOVES_BY = {"kernel_shap": "mask", "leave_one_out": "delete", "lime": "mask"}


def is_circular(
    measure: str, method: str, removal: str, *, computed_with: str | None = None
) -> bool:
    """Whether a method would be judged by what it was computed from.

    `computed_with` is the removal the method used, where it was told one.
    """
    if (measure, method) in ALWAYS:
        return True
    if "removal" not in MEASURES[measure].needs or method not in REMOVES_BY:
        return False
    return removal == (computed_with or REMOVES_BY[method])
