"""Decision flip, worked by hand on four words."""

from bag_answers import given, judge


def test_decision_flip():
    weights = [2.0, 1.0, -2.5, 0.25]  # all together 0.75
    assert judge("decision_flip", weights, [4, 3, 1, 2]) == 1 / 4  # without 2: −1.25
    assert judge("decision_flip", weights, [3, 4, 1, 2]) == 1 / 4  # without 1: −0.25
    assert judge("decision_flip", weights, [2, 3, 4, 1]) == 1  # 3.25, 2.25, 0.25: never
    assert judge("decision_flip", weights, [3, 2, 4, 1]) == 1
    assert judge("decision_flip", [2.0, 1.5, 0.5, -1.0], [2, 4, 3, 1]) == 3 / 4  # 1.5, 1, −1


def test_decision_flip_is_the_first_even_where_the_choice_comes_back():
    assert given("decision_flip", [0.9] * 4, [4, 3, 2, 1], [True, False, True, False]) == 1 / 4
