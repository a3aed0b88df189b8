"""Calls every function of nvidia-ml-py that takes a device and nothing else, and prints what each answers as JSON.

Run as a program of its own, for the binding loads the library by its name.
"""

from __future__ import annotations

import inspect
import json
import sys

import pynvml

# They take a PCI address, or change something.
OTHERS = {"nvmlDeviceQueryDrainState"}
VERBS = ("nvmlDeviceGet", "nvmlDeviceIs", "nvmlDeviceQuery", "nvmlDeviceValidate")


def getters() -> list[str]:
    """Names of the functions with one parameter that has no default, which is the device."""
    found = []
    for name, function in vars(pynvml).items():
        if not name.startswith(VERBS) or name in OTHERS or not inspect.isfunction(function) or "HandleBy" in name:
            continue
        parameters = inspect.signature(function).parameters.values()
        if [parameter.default for parameter in parameters].count(inspect.Parameter.empty) == 1:
            found.append(name)
    return sorted(found)


def main() -> None:
    """One object: the answer's text, or the refusal's number, by function."""
    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    answers: dict[str, str | int] = {}
    for name in getters():
        try:
            answers[name] = str(getattr(pynvml, name)(device))
        except pynvml.NVMLError as error:
            answers[name] = error.value
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
