package etcd

import (
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// expectedWarnings are those that etcd always logs for a single member behind a
// unix socket.
var expectedWarnings = map[string]bool{
	"simple token is not cryptographically signed": true,
	// A new member has not stored its first entry yet; it tries again.
	"Failed to detect schema version":  true,
	"failed to update storage version": true,
	// A member has not applied its first entry since its start: it counts as behind by
	// everything it ever stored, is refused if that is more than 5,000 entries, and
	// tries again at once, thousands of times. If it never gets through, it is not ready
	// in time.
	"failed to publish local member to cluster through raft": true,
}

// attempts are what etcd's client logs about each attempt at a call. Its caller
// reports the call's outcome; if etcd is slow, there are dozens of attempts.
var attempts = map[string]bool{"retrying of unary invoker failed": true}

// ClientLogger is the logger for the client of an external etcd.
func ClientLogger(logger *zap.Logger) *zap.Logger {
	return quiet(logger.Named("etcd-client"), attempts, &atomic.Bool{})
}

// quiet lets warnings through, apart from expected ones, until silent is set.
func quiet(logger *zap.Logger, expected map[string]bool, silent *atomic.Bool) *zap.Logger {
	return logger.WithOptions(zap.IncreaseLevel(zapcore.WarnLevel), zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return &quietCore{core, expected, silent}
	}))
}

type quietCore struct {
	zapcore.Core
	expected map[string]bool
	silent   *atomic.Bool
}

func (c *quietCore) With(fields []zapcore.Field) zapcore.Core {
	return &quietCore{c.Core.With(fields), c.expected, c.silent}
}

func (c *quietCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.silent.Load() || c.expected[entry.Message] {
		return checked
	}
	return c.Core.Check(entry, checked)
}
