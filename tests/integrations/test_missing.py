"""What the modules for other tools say where these are not installed."""

import pytest
from processes import printed

from krag_eval.core import install_line

NAMED = """
import sys
sys.modules[sys.argv[1]] = None  # as if it were not installed
from krag_eval.core.errors import MissingPackage
try:
    exec(sys.argv[2])
except MissingPackage as error:
    print(error.fix)
"""


@pytest.mark.parametrize(
    ("package", "code", "extra"),
    [
        ("pydantic_evals", "import krag_eval.integrations.pydantic_evals", "pydantic-evals"),
        ("opentelemetry", "import krag_eval.integrations.opentelemetry", "otel"),
        (
            "openevals",
            "from krag_eval.integrations import openevals; openevals.create_retrieval_evaluator()",
            "openevals",
        ),
    ],
)
def test_a_missing_package_is_named_with_its_line_for_pip(package, code, extra):
    """In a process where nothing has loaded it; the module of OpenEvals itself can be imported."""
    assert printed(NAMED, package, code).strip() == install_line(extra)
