//! Tests that a figure is well formed and shows all of its parts.

use super::*;

fn figure() -> Figure {
    let series = |name: &str, tone, shape, points: &[(f64, f64)]| Series {
        name: name.into(),
        tone,
        shape,
        points: points.to_vec(),
    };
    let panel = |title: &str| Panel {
        title: title.into(),
        x: Axis::linear("senders"),
        y: Axis::logarithmic("work, clocks"),
        series: vec![
            series("queue & gate", Tone::Ours, Shape::Line, &[(5.0, 10.0), (80.0, 1_000.0)]),
            series("a < b", Tone::Other, Shape::Dashes, &[(5.0, 10.0), (80.0, 100.0)]),
            series("paper", Tone::Paper, Shape::Marks, &[(40.0, 100.0)]),
        ],
    };
    Figure {
        title: "Work".into(),
        caption: "figure 7",
        panels: vec![panel("one"), panel("two"), panel("three")],
    }
}

/// The numbers between `before` and the next quote, wherever `before` occurs.
fn numbers(svg: &str, before: &str) -> Vec<f64> {
    svg.split(before).skip(1).filter_map(|rest| rest.split('"').next()?.parse().ok()).collect()
}

#[test]
fn a_figure_is_well_formed_and_names_everything() {
    let svg = figure().svg();
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    for name in
        ["queue &amp; gate", "a &lt; b", "paper", "senders", "work, clocks", "figure 7", "three"]
    {
        assert!(svg.contains(&format!(">{name}<")), "{name}");
    }
    assert!(svg.contains("prefers-color-scheme: dark"));
}

#[test]
fn nothing_is_drawn_outside_of_the_figure() {
    let svg = figure().svg();
    let view = svg.split("viewBox=\"0 0 ").nth(1).unwrap().split('"').next().unwrap();
    let (width, height) = view.split_once(' ').unwrap();
    let (width, height): (f64, f64) = (width.parse().unwrap(), height.parse().unwrap());
    let points = numbers(&svg, "cx=\"").into_iter().zip(numbers(&svg, "cy=\"")).collect::<Vec<_>>();
    // Only the solid line has circles: its two points, and two in its legend, in each of three
    // panels.
    assert_eq!(points.len(), 12);
    assert!(
        points.iter().all(|(x, y)| (0.0..=width).contains(x) && (0.0..=height).contains(y)),
        "{points:?}"
    );
}

#[test]
fn bars_of_several_series_stand_beside_each_other_on_the_ground() {
    let bars = |name: &str, tone, points: &[(f64, f64)]| Series {
        name: name.into(),
        tone,
        shape: Shape::Bars,
        points: points.to_vec(),
    };
    let panel = Panel {
        title: "cores".into(),
        x: Axis::names("core", vec!["0".into(), "1".into()]),
        y: Axis::linear("work"),
        series: vec![
            bars("a", Tone::Ours, &[(0.0, 10.0), (1.0, 5.0)]),
            bars("b", Tone::Other, &[(0.0, 1.0), (1.0, 0.0)]),
        ],
    };
    let svg = Figure { title: "Work".into(), caption: "figure 11", panels: vec![panel] }.svg();
    // Skips the text before the first rectangle of this class, and the two rectangles of the
    // legend. The plot's own rectangle has another class.
    let of = |field: &str| -> Vec<f64> {
        let drawn = svg.split("<rect class=\"dot ").skip(3);
        drawn.map(|rest| numbers(rest.split("/>").next().unwrap(), field)[0]).collect()
    };
    let (left, width, top, height) = (of(" x=\""), of("width=\""), of(" y=\""), of("height=\""));
    let [first, second, third, fourth] =
        [0, 2, 1, 3].map(|bar| (left[bar], left[bar] + width[bar]));
    assert!(
        first.1 <= second.0 && second.1 <= third.0 && third.1 <= fourth.0,
        "{left:?} {width:?}"
    );
    let ground: Vec<f64> =
        top.iter().zip(&height).map(|(top, height)| (top + height).round()).collect();
    assert!(ground.iter().all(|bottom| *bottom == ground[0]), "{ground:?}");
    assert!((height[0] / height[1] - 2.0).abs() < 0.01 && height[3] == 0.0, "{height:?}");
}

#[test]
fn a_caption_is_cut_into_lines_between_its_words() {
    assert_eq!(lines_of("one two  six", 10), ["one two", "six"]);
    assert_eq!(lines_of("incomprehensible", 3), ["incomprehensible"]);
}
