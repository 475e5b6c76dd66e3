# SPDX-License-Identifier: MIT
"""Spack recipe of penstock."""

from spack.package import *  # noqa: F403 - as every recipe does


class Penstock(PythonPackage):
    """Share the bandwidth of storage among jobs, simulated and live."""

    pypi = "penstock/penstock-0.1.0.tar.gz"
    license("MIT")

    version("0.1.0")

    variant("sim", default=True, description="simulation of policies")
    variant("mount", default=True, description="mounts with limits and objectives")

    depends_on("c", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("py-scikit-build-core@0.11:0", type="build")
    depends_on("python@3.11:", type=("build", "run"))
    depends_on("libfuse@3.14:", when="+mount")
    depends_on("py-msgspec@0.19:", type=("build", "run"))
    depends_on("py-rich@13.9:", type=("build", "run"))
    depends_on("py-pyzmq@26:", type=("build", "run"))
    depends_on("py-prometheus-client@0.21:", type=("build", "run"))
    depends_on("py-numpy@2:", type=("build", "run"), when="+sim")
    depends_on("py-numba@0.63:", type=("build", "run"), when="+sim")
    depends_on("py-scipy@1.13:", type=("build", "run"), when="+sim")
    depends_on("py-polars@1.30:", type=("build", "run"), when="+sim")
