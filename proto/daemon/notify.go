package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
)

// The messages to a service manager (sd_notify(3)).
const (
	notifyReady    = "READY=1"
	notifyStopping = "STOPPING=1"
	notifyAlive    = "WATCHDOG=1"
	notifyStatus   = "STATUS="
)

// Ready tells the service manager that the program does its work from now on.
func Ready(logger *zap.Logger) { notifyOrLog(notifyReady+"\n"+notifyStatus, logger) }

// Waiting tells the service manager what a program that is starting waits for:
// `systemctl status` shows it. The log has to say it too.
func Waiting(what string, logger *zap.Logger) { notifyOrLog(notifyStatus+"waiting for "+what, logger) }

func notifyOrLog(state string, logger *zap.Logger) {
	if err := notify(state); err != nil {
		logger.Warn("the service manager could not be notified", zap.Error(err))
	}
}

// notify sends the service manager a state by systemd's protocol; without
// $NOTIFY_SOCKET it does nothing.
func notify(state string) error {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	return nil
}

// Watchdog tells the service manager that the program is alive, as long as the
// checks of /livez hold. It does so twice in the period that the manager sets;
// a program that stays silent for the period is ended and started again. Checks
// that a restart would not mend are named in except and don't count. It returns
// when ctx ends, and at once if no service manager watches.
func Watchdog(ctx context.Context, health *Health, clock clock.Clock, logger *zap.Logger, except ...string) error {
	patience, err := watchdogPatience()
	if patience == 0 || err != nil {
		return err
	}
	for {
		if err := health.Check(ctx, Livez, except...); err != nil && ctx.Err() == nil {
			logger.Error("not healthy, so the service manager gets no sign of life", zap.Duration("watchdog", patience), zap.Error(err))
		} else {
			notifyOrLog(notifyAlive, logger)
		}
		if err := backoff.Sleep(ctx, clock, patience/2); err != nil {
			return err
		}
	}
}

// watchdogPatience is how long the service manager waits for a sign of life; 0
// means for ever (sd_watchdog_enabled(3)).
func watchdogPatience() (time.Duration, error) {
	value := os.Getenv("WATCHDOG_USEC")
	if pid := os.Getenv("WATCHDOG_PID"); value == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0, nil // it is another process that is watched
	}
	microseconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil || microseconds <= 0 || microseconds > int64(24*time.Hour/time.Microsecond) {
		return 0, &UsageError{fmt.Errorf("$WATCHDOG_USEC=%q: not a number of microseconds up to one day", value)}
	}
	return time.Duration(microseconds) * time.Microsecond, nil
}
