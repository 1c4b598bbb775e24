package configfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	testingclock "k8s.io/utils/clock/testing"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFollower: a change is applied once; an invalid one is reported once and
// changes nothing, and neither does a deleted file. When it is taken back, the
// last that is counted is a success.
func TestFollower(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	core, lines := observer.New(zapcore.ErrorLevel)
	var applied []string
	f := &Follower{
		Path: path, Content: []byte("first"), Clock: testingclock.NewFakeClock(time.Unix(1000, 0)), Logger: zap.New(core),
		Metrics: NewMetrics("test", []byte("first"), prometheus.NewRegistry()),
		Apply: func(content []byte) error {
			if string(content) == "bad" {
				return errors.New("it is bad")
			}
			applied = append(applied, string(content))
			return nil
		},
	}
	failed := ""
	for _, content := range []string{"first", "second", "second", "bad", "bad", "second", "third"} {
		write(t, path, content)
		failed = f.look(failed)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f.look(failed)
	if got := strings.Join(applied, " "); got != "second third" || lines.Len() != 2 {
		t.Errorf("applied %q, and %d lines of failures", got, lines.Len())
	}
	if good, bad := testutil.ToFloat64(f.Metrics.reloads.WithLabelValues("success")),
		testutil.ToFloat64(f.Metrics.reloads.WithLabelValues("failure")); good != 3 || bad != 3 {
		t.Errorf("%v changes and %v failures", good, bad)
	}
	hash := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("third")))
	if n := testutil.CollectAndCount(f.Metrics.info); n != 1 || testutil.ToFloat64(f.Metrics.info.WithLabelValues(hash)) != 1 {
		t.Errorf("%d contents are told to be in force, and not the last one", n)
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, strings.Repeat("x", maxBytes+1))
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "is larger than") {
		t.Errorf("%v", err)
	}
}
