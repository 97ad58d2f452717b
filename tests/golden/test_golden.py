"""What users see stays as it is: shell, result types, numbers and refusals, in both languages.

After a change that is meant: ``cd tests && python -m golden.recorder write``, and a commit of its
own for the golden files that says why they changed.
"""

import pytest

from golden import recorder


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", recorder.FILES)
def test_what_users_see_is_what_is_written_down(name: str) -> None:
    """Every case of a golden file, compared one by one, so that a failure shows which changed."""
    kept, found = recorder.read(name), recorder.FILES[name]()
    assert list(found) == list(kept)
    changed = {case: (kept[case], told) for case, told in found.items() if told != kept[case]}
    for case, (before, after) in list(changed.items())[:3]:
        assert after == before, case
