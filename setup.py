"""The one declaration of the package, its Python dependencies and its commands."""

from glob import glob
import os

from setuptools import find_packages, setup

PACKAGE = 'harness_eval'


def data_files():
    """List what is installed besides Python modules, as (folder, files)."""
    share = f'share/{PACKAGE}'
    files = [
        ('share/ament_index/resource_index/packages', [f'resource/{PACKAGE}']),
        (share, ['package.xml']),
        (f'{share}/launch', sorted(glob('launch/*.launch.py'))),
        # setup.cfg puts the entry points where `ros2 run` looks; this one is for the PATH.
        ('bin', ['bin/harness-eval']),
    ]
    for folder, _, names in sorted(os.walk('config')):
        paths = sorted(os.path.join(folder, n) for n in names if not n.startswith('.'))
        if paths:
            files.append((f'{share}/{folder}', paths))
    return files


setup(
    name=PACKAGE,
    version='0.1.0',
    description='The missing exit code for robot tools: did what just ended really work?',
    long_description=(
        'Judges after the end of a tool, from camera images and other readings, whether its '
        'post-condition holds, and lets a scene graph change only on success.'
    ),
    license='Apache-2.0',
    maintainer='harness_eval maintainers',
    maintainer_email='maintainers@harness-eval.dev',
    classifiers=[
        'Intended Audience :: Developers',
        'Operating System :: POSIX :: Linux',
        'Programming Language :: Python :: 3',
        'Topic :: Scientific/Engineering',
    ],
    packages=find_packages(include=[PACKAGE, f'{PACKAGE}.*']),
    package_data={
        PACKAGE: [
            'py.typed',
            *(f'**/*.{end}' for end in ('xml', 'yaml', 'png', 'jpg', 'html', 'css', 'js')),
        ]
    },
    data_files=data_files(),
    python_requires='>=3.10',
    install_requires=[
        'mcap>=1.2.1',
        'networkx>=2.8',
        'numpy>=1.26',
        # Either distribution of OpenCV will do; pip cannot say so, so that `opencv` is left to the
        # extra below and to rosdep.
        'pydantic>=2.5',
        'PyYAML>=5.4',
        'rich>=12.0',
        'rosbags>=0.10.4',
        'SQLAlchemy>=2.0',
        'typer>=0.9',
    ],
    extras_require={
        'opencv': ['opencv-python-headless>=4.6'],
        'demo': ['mujoco>=3.2'],
        'test': [
            'hypothesis>=6.90',
            'jsonschema>=4.10',
            'pytest>=7.4',
            'pytest-timeout>=2.2',
            'pytest-xdist>=3.5',
        ],
        'endpoint': ['httpx2>=2.12'],
        'replay': [
            'backports.zstd>=1.0; python_version < "3.14"',
            'Jinja2>=3.0',
            'lz4>=3.1',
            'matplotlib>=3.5',
            'scikit-learn>=1.3',
            'scipy>=1.10',
        ],
        'dask': ['distributed>=2024.1'],
        'model': ['httpx2>=2.12', 'openai>=3.0,<4'],
        'dev': [
            'flake8>=6.0',
            'mypy>=1.11',
            'pydocstyle>=6.3',
            'ruff>=0.6',
            'types-networkx',
            'types-PyYAML',
        ],
    },
    zip_safe=True,
    entry_points={
        'console_scripts': [
            'evaluator_node = harness_eval.ros.evaluator_node:main',
            'scene_graph_node = harness_eval.ros.scene_graph_node:main',
            'harness-eval = harness_eval.cli:main',
            'demo_cell = harness_eval.demo.play:main',
        ],
        'pytest11': ['harness_eval = harness_eval.replay.pytest_plugin'],
    },
)
