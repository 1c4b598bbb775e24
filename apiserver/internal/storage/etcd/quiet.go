package etcd

import (
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// expectedWarnings are what etcd says of each member that is alone behind a
// unix socket.
var expectedWarnings = map[string]bool{
	"simple token is not cryptographically signed": true,
	// Of a new member that has not stored its first entry yet; it tries again.
	"Failed to detect schema version":  true,
	"failed to update storage version": true,
	// Of a member whose first entry since its start is not applied yet: it counts as
	// behind by all that it ever stored, is refused for that where there are more than
	// 5,000, and tries again at once, thousands of times. One that never gets through is
	// not ready in time.
	"failed to publish local member to cluster through raft": true,
}

// attempts are what etcd's client says of each attempt at a call. What became of the
// call its caller tells; where etcd is late, there are dozens under way.
var attempts = map[string]bool{"retrying of unary invoker failed": true}

// ClientLogger is for the client of an etcd beside.
func ClientLogger(logger *zap.Logger) *zap.Logger {
	return quiet(logger.Named("etcd-client"), attempts, &atomic.Bool{})
}

// quiet lets through what is warned of, apart from what is as it should be, until
// silent is set.
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
