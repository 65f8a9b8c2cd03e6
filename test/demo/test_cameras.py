"""The pictures show what the cell is, through the lens that camera_info describes."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np
import pytest

from harness_eval.demo import layout as at
from harness_eval.demo.cameras import CAMERAS, Cameras, intrinsics
from harness_eval.demo.cell import Cell
from harness_eval.evaluators.checks.fiducials import find

OF_THE_TAG = {'bottle': at.OBJECT_TAG_HEIGHT - 0.006, 'tin': at.OBJECT_TAG_HEIGHT - 0.004}


@pytest.fixture(scope='module')
def cell() -> Cell:
    return Cell(0)


@pytest.fixture(scope='module')
def cameras(cell: Cell) -> Iterator[Cameras]:
    made = Cameras(cell, 0)
    yield made
    made.close()


@pytest.mark.parametrize('thing', ['bottle', 'tin'])
def test_a_tag_is_seen_where_the_intrinsics_say(cell: Cell, cameras: Cameras, thing: str) -> None:
    matrix = np.array(cell.data.body(thing).xmat).reshape(3, 3)
    half = at.BOTTLE_HALF if thing == 'bottle' else at.TIN_HALF
    point = cell.position(thing) + matrix @ (0.0, -half - 0.0008, OF_THE_TAG[thing])
    camera = cell.model.camera('front').id
    # MuJoCo's cameras look along -z with y up, optical frames along z with y down.
    seen = np.array(cell.data.cam_xmat[camera]).reshape(3, 3).T @ (
        point - cell.data.cam_xpos[camera]
    )
    lens = intrinsics('front')
    expected = (
        lens.centre[0] + lens.focal * seen[0] / -seen[2],
        lens.centre[1] - lens.focal * seen[1] / -seen[2],
    )
    number = at.MARKERS[thing][0]
    grey = cv2.cvtColor(cameras.picture('front'), cv2.COLOR_RGB2GRAY)
    sightings = [s for s in find(grey, 'DICT_4X4_50') if s.id == number]
    assert len(sightings) == 1
    x, y = sightings[0].centre
    found = (x * lens.width - 0.5, y * lens.height - 0.5)
    assert found == pytest.approx(expected, abs=1.5)


@pytest.mark.parametrize('camera', CAMERAS)
def test_two_pictures_of_a_cell_at_rest_differ_by_noise_only(
    cameras: Cameras, camera: str
) -> None:
    first, second = cameras.picture(camera), cameras.picture(camera)
    difference = np.abs(first.astype(int) - second.astype(int))
    assert first.tobytes() != second.tobytes()
    assert difference.mean() < 4.0


@pytest.mark.parametrize('camera', CAMERAS)
def test_a_picture_has_the_size_of_its_intrinsics(cameras: Cameras, camera: str) -> None:
    lens = intrinsics(camera)
    picture = cameras.picture(camera)
    assert picture.shape == (lens.height, lens.width, 3)
    assert picture.dtype == np.uint8


def test_cardboard_before_the_front_camera_hides_its_calibration_tag_and_no_other_camera_s(
    cell: Cell, cameras: Cameras
) -> None:
    def seen(camera: str, number: int) -> bool:
        grey = cv2.cvtColor(cameras.picture(camera), cv2.COLOR_RGB2GRAY)
        return number in {sighting.id for sighting in find(grey, 'DICT_4X4_50')}

    assert seen('front', at.FRONT_CALIBRATION)
    cell.cover()
    assert not seen('front', at.FRONT_CALIBRATION)
    assert seen('wrist', at.WRIST_CALIBRATION)
    cell.uncover()
    assert seen('front', at.FRONT_CALIBRATION)
