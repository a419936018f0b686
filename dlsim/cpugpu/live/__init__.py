"""Real work on the devices of this machine, scheduled by the policy that drives the simulation.

>>> from dlsim.cpugpu.live import KERNELS, LiveJob, Threads, run_live, slots
>>> devices = slots(gpu="numpy", cpu="numpy")
>>> with Threads([device.name for device in devices]) as crew:
...     run = run_live([LiveJob(KERNELS["saxpy"], 1000)] * 3, crew, devices)
>>> run.log.audit()  # every decision, computed again from what its rule used
[]
"""

from dlsim.cpugpu.live.crew import CREWS, Crew, Dask, LostWorkerError, Processes, Threads
from dlsim.cpugpu.live.devices import Slot, best_gpu, slots
from dlsim.cpugpu.live.kernels import KERNELS, Kernel, Problem, kernel_named
from dlsim.cpugpu.live.log import Log
from dlsim.cpugpu.live.session import LiveRun, calibrate, run_live
from dlsim.cpugpu.live.split import LiveSplit, run_split
from dlsim.cpugpu.live.work import App, LiveJob, jobs_from_csv

__all__ = [
    "CREWS", "KERNELS", "App", "Crew", "Dask", "Kernel", "LiveJob", "LiveRun", "LiveSplit", "Log",
    "LostWorkerError", "Problem", "Processes", "Slot", "Threads", "best_gpu", "calibrate",
    "jobs_from_csv", "kernel_named", "run_live", "run_split", "slots",
]  # fmt: skip
