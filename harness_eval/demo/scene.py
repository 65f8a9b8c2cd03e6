"""The cell as a MuJoCo model: a gantry with a gripper above a table, and what lies on it.

What can be touched is built from boxes and cylinders in group 3, which no camera draws; what can
be seen are lofted meshes and tags in group 2, which touch nothing.
"""

from __future__ import annotations

import numpy as np

from harness_eval.demo import layout as at
from harness_eval.demo import shapes, textures
from harness_eval.demo.mjcf import camera_at
from harness_eval.demo.robot import gantry
from harness_eval.demo.things import (
    bottle,
    cabinet,
    hole_block,
    peg,
    rack,
    surroundings,
    things_of_faults,
    tin,
    tray,
)

RED = '0.78 0.07 0.06 1'
BLUE = '0.08 0.24 0.62 1'


def assets(seed: int) -> dict[str, bytes]:
    """The textures as PNG bytes by file name; the grain of the materials follows the seed."""
    rng = np.random.default_rng(seed)
    files = {
        'wood.png': textures.png(textures.wood(rng)),
        'metal.png': textures.png(textures.brushed_metal(rng)),
        'cardboard.png': textures.png(textures.cardboard(rng)),
    }
    for number, _ in at.MARKERS.values():
        files[f'marker_{number}.png'] = textures.png(textures.marker(number))
    return files


def model_xml() -> str:
    """The whole model as MJCF text; its textures come from :func:`assets`."""
    return f"""
<mujoco model="demo cell">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="{at.PHYSICS_STEP}" integrator="implicitfast" cone="elliptic" impratio="10"
    noslip_iterations="2"/>
  <statistic extent="1" center="0 0 0.1"/>
  <visual>
    <global offwidth="640" offheight="480"/>
    <quality shadowsize="1024" offsamples="4" numslices="24" numstacks="2" numquads="1"/>
    <headlight ambient="0.34 0.34 0.36" diffuse="0.22 0.22 0.22" specular="0 0 0"/>
    <map znear="0.02" zfar="8" shadowclip="0.62"/>
  </visual>
  <default>
    <default class="seen"><geom group="2" contype="0" conaffinity="0" mass="0"/></default>
    <default class="touched"><geom group="3" friction="1.0 0.02 0.001" condim="4"
      rgba="0.5 0.5 0.5 0.4"/></default>
    <default class="solid"><geom group="2" friction="1.0 0.02 0.001" condim="4"/></default>
  </default>
  <asset>{_materials()}{_meshes()}</asset>
  <worldbody>
    <light pos="-0.5 -0.9 1.7" dir="0.28 0.52 -0.9" type="directional" diffuse="0.62 0.60 0.56"
      specular="0.35 0.35 0.33" castshadow="true"/>
    <light pos="0.9 -0.4 1.3" dir="-0.5 0.3 -0.7" type="directional" diffuse="0.16 0.18 0.22"
      specular="0.1 0.1 0.1" castshadow="false"/>
    {camera_at('front', at.FRONT_CAMERA_AT, at.FRONT_CAMERA_LOOKS_AT, at.FRONT_CAMERA_FOVY)}
    {surroundings()}
    {gantry()}
    {cabinet()}
    {tray()}
    {hole_block()}
    {rack()}
    {bottle()}
    {tin()}
    {peg()}
    {things_of_faults()}
  </worldbody>
  <equality>
    <joint joint1="finger_left" joint2="finger_right" polycoef="0 1 0 0 0"/>
  </equality>
  <contact>
    <exclude body1="palm" body2="left_finger"/>
    <exclude body1="palm" body2="right_finger"/>
    <exclude body1="cabinet" body2="drawer"/>
  </contact>
  <actuator>
    <position name="x" joint="gantry_x" kp="9000" dampratio="1" forcerange="-200 200"/>
    <position name="y" joint="gantry_y" kp="9000" dampratio="1" forcerange="-200 200"/>
    <position name="z" joint="gantry_z" kp="9000" dampratio="1" forcerange="-60 60"/>
    <position name="yaw" joint="gantry_yaw" kp="60" dampratio="1" forcerange="-10 10"/>
    <position name="left" joint="finger_left" kp="{at.GRIP_STIFFNESS}" dampratio="1"
      forcerange="-25 25"/>
    <position name="right" joint="finger_right" kp="{at.GRIP_STIFFNESS}" dampratio="1"
      forcerange="-25 25"/>
  </actuator>
</mujoco>"""


def _materials() -> str:
    tags = ''.join(
        f'<texture name="marker_{number}" type="2d" file="marker_{number}.png"/>'
        f'<material name="marker_{number}" texture="marker_{number}" specular="0.05" '
        'shininess="0.1"/>'
        for number, _ in at.MARKERS.values()
    )
    return (
        tags
        + """
    <texture type="skybox" builtin="gradient" rgb1="0.80 0.83 0.86" rgb2="0.46 0.51 0.57"
      width="64" height="384"/>
    <texture name="floor" type="2d" builtin="checker" rgb1="0.40 0.43 0.46" rgb2="0.43 0.46 0.49"
      mark="edge" markrgb="0.34 0.37 0.40" width="256" height="256"/>
    <material name="floor" texture="floor" texuniform="true" texrepeat="2 2" specular="0.1"/>
    <texture name="wood" type="2d" file="wood.png"/>
    <texture name="metal" type="2d" file="metal.png"/>
    <texture name="cardboard" type="2d" file="cardboard.png"/>
    <material name="table" texture="wood" texrepeat="1 1" specular="0.15" shininess="0.3"/>
    <material name="cabinet" texture="wood" texrepeat="1 1" specular="0.2" shininess="0.4"
      rgba="0.72 0.62 0.54 1"/>
    <material name="drawer" texture="wood" texrepeat="1 1" specular="0.2" shininess="0.4"
      rgba="0.95 0.86 0.74 1"/>
    <material name="metal" texture="metal" texuniform="true" texrepeat="6 6" specular="0.6"
      shininess="0.6"/>
    <material name="dark" rgba="0.15 0.16 0.18 1" specular="0.4" shininess="0.5"/>
    <material name="rubber" rgba="0.10 0.10 0.10 1" specular="0.1" shininess="0.1"/>
    <material name="accent" rgba="0.95 0.52 0.08 1" specular="0.4" shininess="0.5"/>
    <material name="brass" rgba="0.78 0.60 0.26 1" specular="0.8" shininess="0.8"/>
    <material name="steel" rgba="0.62 0.64 0.67 1" specular="0.9" shininess="0.8"/>
    <material name="slate" rgba="0.30 0.34 0.39 1" specular="0.3" shininess="0.4"/>
    <material name="green" rgba="0.12 0.42 0.27 1" specular="0.3" shininess="0.4"/>
    <material name="cardboard" texture="cardboard" specular="0.02"/>"""
        + f"""
    <material name="red" rgba="{RED}" specular="0.7" shininess="0.7"/>
    <material name="blue" rgba="{BLUE}" specular="0.7" shininess="0.7"/>
    <material name="white" rgba="0.90 0.90 0.88 1" specular="0.3" shininess="0.4"/>
    <material name="hole" rgba="0.04 0.04 0.05 1" specular="0"/>"""
    )


def _meshes() -> str:
    section = shapes.Section
    half, tall = at.BOTTLE_HALF, at.BOTTLE_HEIGHT
    flask = shapes.loft(
        'bottle',
        [
            section(0.0, half - 0.003, half - 0.003),
            section(0.003, half, half),
            section(tall - 0.032, half, half),
            section(tall - 0.028, half - 0.0015, half - 0.0015, 7),
            section(tall - 0.020, half - 0.007, half - 0.007, 3),
        ],
    )
    lid = shapes.loft(
        'bottle_lid',
        [
            section(tall - 0.020, 0.0235, 0.0235, 2),
            section(tall - 0.002, 0.0235, 0.0235, 2),
            section(tall, 0.0220, 0.0220, 2),
        ],
    )
    half, tall = at.TIN_HALF, at.TIN_HEIGHT
    can = shapes.loft(
        'tin',
        [
            section(0.0, half - 0.001, half - 0.001, 5),
            section(0.002, half, half, 6),
            section(tall - 0.012, half, half, 6),
        ],
    )
    tin_lid = shapes.loft(
        'tin_lid',
        [
            section(tall - 0.012, half + 0.0008, half + 0.0008, 6),
            section(tall - 0.002, half + 0.0008, half + 0.0008, 6),
            section(tall, half - 0.001, half - 0.001, 6),
        ],
    )
    half = at.PEG_HEAD_HALF
    low, high = at.PEG_SHAFT_LENGTH, at.PEG_SHAFT_LENGTH + at.PEG_HEAD_HEIGHT
    head = shapes.loft(
        'peg_head',
        [
            section(low, half - 0.002, half - 0.002, 6),
            section(low + 0.003, half, half, 8),
            section(high - 0.003, half, half, 8),
            section(high, half - 0.002, half - 0.002, 6),
        ],
    )
    tags = ''.join(shapes.tag(f'tag_{number}', edge) for number, edge in at.MARKERS.values())
    return flask + lid + can + tin_lid + head + tags
