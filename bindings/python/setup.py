"""What pyproject.toml cannot say: with the shared library beside the package (tools/package wheel
puts it there) the wheel is for one platform and any Python 3; without it, for all platforms."""

import pathlib

from setuptools import setup
from setuptools.dist import Distribution

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70
    from wheel.bdist_wheel import bdist_wheel

HAS_LIBRARY = (pathlib.Path(__file__).resolve().parent / 'semel/libsemel.so.0').exists()


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return HAS_LIBRARY


class Wheel(bdist_wheel):
    def get_tag(self):
        python, abi, platform = super().get_tag()
        return ('py3', 'none', platform) if HAS_LIBRARY else (python, abi, platform)


setup(distclass=WithLibrary, cmdclass={'bdist_wheel': Wheel})
