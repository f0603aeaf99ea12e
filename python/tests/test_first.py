import opentcp
def test_x() -> None:
    assert opentcp.__version__
