//! Notifies the service manager that started this process, such as systemd (sd_notify(3)).

use std::future::pending;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{Interval, MissedTickBehavior};

/// The service manager, which is notified if there is one.
#[derive(Debug)]
pub(super) struct Manager {
    /// Timer for signs of life, if the manager wants any (`WATCHDOG_USEC`).
    watchdog: Option<Interval>,
}

impl Manager {
    /// The manager that `NOTIFY_SOCKET` names.
    pub(super) fn of_environment() -> Self {
        // Twice as often as it asks for, as its manual advises.
        let every = sd_notify::watchdog_enabled().map(|limit| limit / 2);
        let every = every.filter(|every| *every > Duration::ZERO);
        let watchdog = every.map(|every| {
            let mut interval = tokio::time::interval(every);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        });
        Manager { watchdog }
    }

    /// Notifies the manager that this process is ready.
    pub(super) fn ready(&self) {
        if let Err(error) = sd_notify::notify(&[NotifyState::Ready]) {
            eprintln!("anabranch: the service manager cannot be notified: {error}");
        }
    }

    /// Notifies the manager that the settings are being read again; [`Manager::reloaded`] follows.
    pub(super) fn reloading(&self) {
        let Ok(now) = NotifyState::monotonic_usec_now() else { return };
        tell(&[NotifyState::Reloading, now]);
    }

    /// Notifies the manager that the settings have been read again; `mistake`, if any, is why the old ones stay.
    pub(super) fn reloaded(&self, mistake: Option<&str>) {
        let status = mistake.map(|why| format!("The old settings are in use: {why}"));
        tell(&[NotifyState::Status(status.as_deref().unwrap_or_default()), NotifyState::Ready]);
    }

    /// Notifies the manager that this process ends.
    pub(super) fn stopping(&self) {
        tell(&[NotifyState::Stopping]);
    }

    /// Waits until the next sign of life is due; for ever if none is wanted.
    pub(super) async fn asks(&mut self) {
        match &mut self.watchdog {
            Some(interval) => drop(interval.tick().await),
            None => pending().await,
        }
    }

    /// Gives a sign of life.
    pub(super) fn works(&self) {
        tell(&[NotifyState::Watchdog]);
    }
}

fn tell(state: &[NotifyState<'_>]) {
    // `ready` has already reported a manager that cannot be reached.
    let _ = sd_notify::notify(state);
}
