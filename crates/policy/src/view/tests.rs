use super::*;

#[test]
fn losses_answered_by_one_cut_end_one_interval() {
    let ms = Time::from_millis;
    let mut bytes = InterLoss::default();
    bytes.on_acked(5000);
    assert_eq!((bytes.since, bytes.between, bytes.largest()), (5000, 0, 5000));
    bytes.on_lost(ms(100), ms(40));
    bytes.on_acked(700);
    // Sent before the first loss was noticed: the same congestion.
    bytes.on_lost(ms(120), ms(90));
    assert_eq!((bytes.since, bytes.between, bytes.largest()), (700, 5000, 5000));
    bytes.on_acked(5300);
    bytes.on_lost(ms(250), ms(101));
    assert_eq!((bytes.since, bytes.between, bytes.largest()), (0, 6000, 6000));
}

#[test]
fn what_is_queued_is_not_missing() {
    let window =
        WindowView { sources: 10, received: 2, in_flight: 3, due: 1, ..Default::default() };
    assert_eq!(window.shortfall(), 4);
    assert_eq!(WindowView { queued: 3, ..window }.shortfall(), 1);
}

#[test]
fn a_copy_is_taken_once_by_each_path() {
    let path = PathView::unknown(PathId(2));
    let mut window = WindowView { in_flight: 4, carried_on: 0b101, ..Default::default() };
    assert_eq!(window.uncopied(&path), 4);
    window.in_flight_on[2] = 1;
    window.queued_on[2] = 2;
    assert_eq!(window.uncopied(&path), 1);
    assert!(window.carried_by(&path) && !window.carried_by(&PathView::unknown(PathId(1))));
    window.lost_on = 0b100;
    assert!(!window.lost_by(&path), "nothing of it is due");
    window.due = 1;
    assert!(window.lost_by(&path));
}

#[test]
fn windows_are_found_by_identifier_although_some_are_left_out() {
    let windows = [3, 4, 9].map(|id| WindowView { id: WindowId(id), ..Default::default() });
    let fresh = FreshView {
        symbols: 0,
        more: false,
        class: TrafficClass::Bulk,
        symbol_size: 1000,
        blocked: Some(Blocked::Application),
        credit: 0,
    };
    let demand = Demand::default();
    let view = SchedulerView { now: Time::ZERO, paths: &[], windows: &windows, fresh, demand };
    assert_eq!(view.window(WindowId(9)).map(|window| window.id), Some(WindowId(9)));
    assert!(view.window(WindowId(5)).is_none());
}
