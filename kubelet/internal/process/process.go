// Package process has the kubelet's own process run as its configuration says:
// how likely the kernel ends it when memory is short, how many files it may
// open, and in which control group it is.
//
// The program calls it once, when it starts; tests don't, whose process is not a
// kubelet's alone.
package process

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"go.uber.org/zap"

	"kctl/kubelet/internal/cgroup"
)

// Settings are what can be said of the process.
type Settings struct {
	OOMScore  int32  // -1000 to 1000, see proc_pid_oom_score_adj(5)
	OpenFiles int64  // zero leaves it as it is
	Group     string // a control group's path; "" for the one that it is started in
}

// Validate says what can't be.
func (s Settings) Validate() error {
	if s.OOMScore < -1000 || s.OOMScore > 1000 || s.OpenFiles < 0 {
		return fmt.Errorf("--oom-score-adj=%d must be between -1000 and 1000, and --max-open-files=%d not negative", s.OOMScore, s.OpenFiles)
	}
	return nil
}

// Apply does what it can. A process that is not allowed to protect itself, or to
// open more files, runs all the same, as upstream's does; one that can't be in its
// group would use what is kept for others.
func (s Settings) Apply(logger *zap.Logger) error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(int(s.OOMScore))), 0); err != nil {
		logger.Info("the kubelet's OOM score stays as it is", zap.Int32("wanted", s.OOMScore), zap.Error(err))
	}
	if files := uint64(s.OpenFiles); files > 0 {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: files}); err != nil {
			logger.Info("how many files the kubelet may open stays as it is", zap.Uint64("wanted", files), zap.Error(err))
		}
	}
	if s.Group == "" {
		return nil
	}
	if err := cgroup.Enter(s.Group); err != nil {
		return fmt.Errorf("--kubelet-cgroups=%s: %w", s.Group, err)
	}
	return nil
}
