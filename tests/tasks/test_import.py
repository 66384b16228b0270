import subprocess
import sys


def test_importing_tasks_loads_neither_torch_nor_pandas() -> None:
    """Reading and checking a file must not cost the seconds that the model's libraries take to load."""
    code = "import sys, perdure.tasks; print([name for name in ('torch', 'pandas', 'transformers') if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
