"""Fiducial markers: visible or absent, in a region, and where they are in metres."""

from __future__ import annotations

import functools
from typing import Any

from judged_world import make_request, make_view, marker_picture, plain, with_marker
import numpy as np
import pytest

from harness_eval.config.checks import Check
from harness_eval.config.markers import DICTIONARY_SIZES
from harness_eval.contract import CameraInfo, EvaluatorError, Image, View
from harness_eval.evaluators.checks import CheckResult, run_check
from harness_eval.evaluators.checks.fiducials import Fiducials, find

DICTIONARY = 'DICT_4X4_50'


def run(view: View | Image, **settings: Any) -> CheckResult:
    if not isinstance(view, View):
        view = make_view('front', view)
    check = Check.model_validate(
        {'marker': {'view': 'front', 'dictionary': DICTIONARY, 'id': 7, **settings}}
    )
    return run_check(check, make_request(view))


def fault(view: View | Image, **settings: Any) -> EvaluatorError:
    with pytest.raises(EvaluatorError) as caught:
        run(view, **settings)
    return caught.value


LIGHT = plain((230, 230, 230))
ONE = with_marker(LIGHT, DICTIONARY, 7, left=130, top=90)
"""Centre at pixel 160, 120: in the middle."""


def test_a_marker_is_seen_with_its_centre_beside_the_region() -> None:
    found = run(ONE, region=[0.3, 0.0, 0.7, 0.6])
    assert found.holds
    assert found.evidence == (
        'marker 7 in front: centre (0.5, 0.5), wanted within [0.30, 0.00, 0.70, 0.60]: holds'
    )


def test_a_marker_outside_the_region_fails() -> None:
    found = run(ONE, region=[0.6, 0.0, 1.0, 1.0])
    assert not found.holds
    assert found.evidence.endswith('wanted within [0.60, 0.00, 1.00, 1.00]: fails')


def test_an_edge_of_a_region_is_shown_as_it_was_given() -> None:
    assert 'within [0.125, 0.00, 1.00, 1.00]' in run(ONE, region=[0.125, 0, 1, 1]).evidence


def test_a_marker_that_is_not_there_fails_and_others_are_named() -> None:
    picture = with_marker(ONE, DICTIONARY, 3, left=20, top=20)
    found = run(picture, id=9)
    assert not found.holds
    assert found.evidence == ('marker 9 in front: not seen (seen: 3, 7), wanted visible: fails')


def test_a_marker_of_another_number_is_not_taken_for_it() -> None:
    assert not run(with_marker(LIGHT, DICTIONARY, 8, left=130, top=90)).holds


def test_a_picture_without_markers_says_so() -> None:
    assert 'not seen, nor any other marker' in run(LIGHT).evidence


@pytest.mark.parametrize(('picture', 'holds'), [(LIGHT, True), (ONE, False)])
def test_an_absent_marker_must_not_be_seen(picture: Image, holds: bool) -> None:
    found = run(picture, visible=False)
    assert found.holds is holds
    assert 'wanted absent' in found.evidence


@pytest.mark.parametrize(
    ('region', 'holds'), [([0.6, 0.0, 1.0, 1.0], True), ([0.4, 0.4, 0.6, 0.6], False)]
)
def test_absence_can_be_asked_of_a_region(region: list[float], holds: bool) -> None:
    assert run(ONE, visible=False, region=region).holds is holds


def test_of_several_markers_with_the_number_one_within_is_enough_and_all_are_reported() -> None:
    picture = with_marker(ONE, DICTIONARY, 7, left=20, top=20)
    found = run(picture, region=[0.4, 0.4, 0.6, 0.6])
    assert found.holds
    assert found.evidence.count('centre') == 2
    assert not run(picture, region=[0.4, 0.4, 0.6, 0.6], visible=False).holds
    assert run(picture, region=[0.8, 0.8, 1.0, 1.0], visible=False).holds


def test_a_grey_camera_sees_markers_too() -> None:
    assert run(ONE[:, :, 0].copy()).holds


@pytest.mark.parametrize(
    'dictionary',
    ['DICT_4X4_50', 'DICT_5X5_100', 'DICT_6X6_250', 'DICT_7X7_1000', 'DICT_ARUCO_ORIGINAL',
     'DICT_APRILTAG_16h5', 'DICT_APRILTAG_25h9', 'DICT_APRILTAG_36h10', 'DICT_APRILTAG_36h11'],
)  # fmt: skip
def test_the_dictionaries_of_aruco_and_apriltag_are_known(dictionary: str) -> None:
    picture = with_marker(LIGHT, dictionary, 5, left=100, top=60, side=100)
    assert run(picture, dictionary=dictionary, id=5).holds


@pytest.mark.parametrize('turns', [0, 1, 2, 3])
def test_corners_are_found_to_a_fraction_of_a_pixel(turns: int) -> None:
    picture = np.rot90(ONE[:, :, 0], turns).copy()
    (sighting,) = find(picture, DICTIONARY)
    # The outer edge of the black border lies half a pixel outside the centres of its pixels.
    assert np.ptp(sighting.corners, axis=0) == pytest.approx([60, 60], abs=1.0)


def test_each_view_is_searched_once_for_each_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness_eval.evaluators.checks import fiducials

    searched: list[str] = []

    def counted(picture: Image, dictionary: str) -> Any:
        searched.append(dictionary)
        return find(picture, dictionary)

    monkeypatch.setattr(fiducials, 'find', counted)
    finder = Fiducials()
    view = make_view('front', ONE)
    for marker in (7, 8):
        finder.seen(view, DICTIONARY, marker)
    finder.seen(view, 'DICT_5X5_50', 7)
    assert searched == [DICTIONARY, 'DICT_5X5_50']


def test_the_sizes_of_dictionaries_in_the_configuration_are_those_of_opencv() -> None:
    import cv2

    aruco: Any = cv2.aruco
    for name, size in DICTIONARY_SIZES.items():
        code = getattr(aruco, name, None)
        if code is None:
            continue  # newer than this OpenCV
        if hasattr(aruco, 'getPredefinedDictionary'):
            found = aruco.getPredefinedDictionary(code)
        else:
            found = aruco.Dictionary_get(code)
        assert (name, found.bytesList.shape[0]) == (name, size)


def test_a_marker_that_the_dictionary_lacks_is_an_error_and_not_absent() -> None:
    with pytest.raises(EvaluatorError, match='markers 0 to 49') as caught:
        Fiducials().seen(make_view('front', LIGHT), DICTIONARY, 50)
    assert caught.value.kind == 'unknown_marker'


def test_a_dictionary_that_this_opencv_lacks_is_an_error() -> None:
    with pytest.raises(EvaluatorError, match='DICT_9X9_50'):
        find(plain(0), 'DICT_9X9_50')


def test_an_opencv_without_aruco_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import cv2

    monkeypatch.delattr(cv2, 'aruco')
    assert fault(ONE).kind == 'no_aruco'


@pytest.mark.parametrize('shape', [(1, 1, 3), (1, 400, 3), (3, 3)])
def test_a_tiny_picture_has_no_markers(shape: tuple[int, ...]) -> None:
    assert not run(np.full(shape, 200, np.uint8)).holds


# Positions

WIDTH, HEIGHT = 320, 240
MATRIX = np.array([[300.0, 0.0, 160.5], [0.0, 305.0, 118.5], [0.0, 0.0, 1.0]])
SIZE = 0.08
PLUMB_BOB = (-0.25, 0.08, 0.001, -0.0005, 0.0)
EQUIDISTANT = (0.02, -0.01, 0.003, -0.001)
RATIONAL = (0.1, -0.05, 0.0005, 0.0005, 0.01, 0.05, -0.02, 0.005)


def rotation(x: float, y: float, z: float) -> Any:
    """Turn about x, then y, then z (radians), without OpenCV."""
    cx, cy, cz, sx, sy, sz = *np.cos([x, y, z]), *np.sin([x, y, z])
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return about_z @ about_y @ about_x


def distorted(rays: Any, model: str, coefficients: tuple[float, ...]) -> Any:
    """Distort ``Nx2`` points on the plane at distance 1, by the formulas of the two models."""
    x, y = rays[:, 0], rays[:, 1]
    if not coefficients:
        return rays
    r = np.hypot(x, y)
    if model == 'equidistant':
        theta = np.arctan(r)
        k1, k2, k3, k4 = coefficients
        bent = theta * (1 + k1 * theta**2 + k2 * theta**4 + k3 * theta**6 + k4 * theta**8)
        scale = np.divide(bent, r, out=np.ones_like(r), where=r > 1e-12)
        return rays * scale[:, None]
    k1, k2, p1, p2, k3, k4, k5, k6 = (*coefficients, 0, 0, 0)[:8]
    radial = (1 + k1 * r**2 + k2 * r**4 + k3 * r**6) / (1 + k4 * r**2 + k5 * r**4 + k6 * r**6)
    return np.column_stack(
        [
            x * radial + 2 * p1 * x * y + p2 * (r**2 + 2 * x**2),
            y * radial + p1 * (r**2 + 2 * y**2) + 2 * p2 * x * y,
        ]
    )


@functools.cache
def photograph(
    centre: tuple[float, float, float],
    turn: tuple[float, float, float],
    model: str = 'plumb_bob',
    coefficients: tuple[float, ...] = (),
) -> Image:
    """Take a picture of marker 7 through a camera written in NumPy: one ray for each pixel.

    Distortion has no closed inverse, so each pixel's ray is found by iteration.
    """
    factor = 3  # rays for each pixel and axis, against jagged edges
    steps = (np.arange(factor) + 0.5) / factor - 0.5
    columns = (np.arange(WIDTH)[:, None] + steps).ravel()
    rows = (np.arange(HEIGHT)[:, None] + steps).ravel()
    u, v = np.meshgrid(columns, rows)
    wanted = np.column_stack(
        [((u - MATRIX[0, 2]) / MATRIX[0, 0]).ravel(), ((v - MATRIX[1, 2]) / MATRIX[1, 1]).ravel()]
    )
    rays = wanted.copy()
    for _ in range(15 if coefficients else 0):
        rays = rays - (distorted(rays, model, coefficients) - wanted)
    turned = rotation(*turn)
    directions = np.column_stack([rays, np.ones(len(rays))]) @ turned  # in the marker's frame
    origin = -np.asarray(centre) @ turned
    distance = -origin[2] / directions[:, 2]
    on_plane = origin[:2] + distance[:, None] * directions[:, :2]
    cells = 120
    art = np.full((2 * cells, 2 * cells), 230, np.uint8)
    art[cells // 2 : -(cells // 2), cells // 2 : -(cells // 2)] = marker_picture(
        DICTIONARY, 7, cells
    )
    # The marker's y points up in its own frame, rows of the art go down.
    column = np.floor(on_plane[:, 0] / SIZE * cells + cells).astype(int)
    row = np.floor(-on_plane[:, 1] / SIZE * cells + cells).astype(int)
    inside = (column >= 0) & (column < 2 * cells) & (row >= 0) & (row < 2 * cells) & (distance > 0)
    colours = np.full(len(column), 200, np.uint8)
    colours[inside] = art[row[inside], column[inside]]
    fine = colours.reshape(HEIGHT, factor, WIDTH, factor)
    grey = np.rint(fine.mean(axis=(1, 3))).astype(np.uint8)
    made: Image = np.repeat(grey[:, :, None], 3, axis=2)
    return made


def camera(
    picture: Image,
    model: str = 'plumb_bob',
    coefficients: tuple[float, ...] = (),
    **changes: Any,
) -> View:
    fields: dict[str, Any] = {
        'width': WIDTH, 'height': HEIGHT, 'matrix': MATRIX, 'distortion': np.array(coefficients),
        'model': model, **changes,
    }  # fmt: skip
    return make_view('front', picture, camera_info=CameraInfo(**fields))


FACING = (np.pi, 0.0, 0.0)
"""The marker looks at the camera, upright."""


@pytest.mark.parametrize(
    ('centre', 'turn', 'model', 'coefficients'),
    [((0.0, 0.0, 0.4), FACING, 'plumb_bob', ()),
     ((0.08, -0.05, 0.35), (np.pi - 0.5, 0.2, 0.3), 'plumb_bob', ()),
     ((-0.12, 0.06, 0.4), (np.pi + 0.4, -0.3, 1.2), 'plumb_bob', PLUMB_BOB),
     ((0.1, 0.08, 0.4), (np.pi - 0.3, 0.1, 0.0), 'rational_polynomial', RATIONAL),
     ((-0.12, -0.08, 0.4), (np.pi, 0.4, -0.5), 'equidistant', EQUIDISTANT)],
)  # fmt: skip
def test_a_marker_is_found_where_it_stands_to_a_few_millimetres(
    centre: Any, turn: Any, model: str, coefficients: tuple[float, ...]
) -> None:
    view = camera(photograph(centre, turn, model, coefficients), model, coefficients)
    tolerance = {'x': 0.002, 'y': 0.002, 'z': 0.006}
    for axis, value in zip('xyz', centre, strict=True):
        margin = tolerance[axis]
        near = {axis: [value - margin, value + margin]}
        beside = {axis: [value + margin, value + 2 * margin]}
        assert run(view, size=SIZE, position=near).holds
        assert not run(view, size=SIZE, position=beside).holds


def test_the_position_stands_in_the_evidence_beside_its_bounds() -> None:
    view = camera(photograph((0.0, 0.0, 0.5), FACING))
    found = run(view, size=SIZE, position={'x': [-0.02, 0.02], 'z': [0.6, 0.7]})
    assert not found.holds
    assert 'm, wanted x in [-0.02, 0.02], z in [0.6, 0.7] m: fails' in found.evidence


def test_a_pose_without_camera_info_is_an_error() -> None:
    error = fault(ONE, size=SIZE, position={'z': [0.1, 1.0]})
    assert error.kind == 'camera_info_missing'
    assert 'capture.views.front.camera_info' in error.message


UNCALIBRATED = np.zeros((3, 3))


@pytest.mark.parametrize(
    ('changes', 'kind'),
    [({'width': 640, 'height': 480}, 'camera_info_size'),
     ({'matrix': UNCALIBRATED}, 'uncalibrated_camera'),
     ({'matrix': np.full((3, 3), np.nan)}, 'uncalibrated_camera'),
     ({'distortion': np.array([np.nan])}, 'uncalibrated_camera'),
     ({'model': 'thin_prism', 'distortion': np.ones(4)}, 'distortion_model'),
     ({'model': 'plumb_bob', 'distortion': np.ones(3)}, 'distortion_model'),
     ({'model': 'equidistant', 'distortion': np.ones(5)}, 'distortion_model')],
)  # fmt: skip
def test_intrinsics_that_do_not_describe_the_picture_are_an_error(
    changes: dict[str, Any], kind: str
) -> None:
    view = camera(photograph((0.0, 0.0, 0.5), FACING), **changes)
    assert fault(view, size=SIZE, position={'z': [0.1, 1.0]}).kind == kind


def test_raw_intrinsics_of_a_rectified_picture_are_an_error() -> None:
    picture = photograph((0.0, 0.0, 0.5), FACING)
    info = CameraInfo(WIDTH, HEIGHT, MATRIX, np.array(PLUMB_BOB), 'plumb_bob')
    view = make_view('front', picture, camera_info=info, topic='/cell/front/image_rect_color')
    assert fault(view, size=SIZE, position={'z': [0.1, 1.0]}).kind == 'rectified_view'
