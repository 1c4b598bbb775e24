// Package process configures the kubelet's own process: how likely the kernel
// is to kill it when memory is short, how many files it may open, and its
// control group.
//
// The program calls it once, when it starts. Tests don't, because their process
// is not only a kubelet.
package process

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"go.uber.org/zap"

	"kctl/kubelet/internal/cgroup"
)

// Settings are the settings of the process.
type Settings struct {
	OOMScore  int32  // -1000 to 1000, see proc_pid_oom_score_adj(5)
	OpenFiles int64  // zero leaves it as it is
	Group     string // a control group's path; "" for the one that it is started in
	// SystemGroup is the control group for what else runs in the root group; "" leaves it
	// there.
	SystemGroup string
}

// Validate checks the settings.
func (s Settings) Validate() error {
	if s.OOMScore < -1000 || s.OOMScore > 1000 || s.OpenFiles < 0 {
		return fmt.Errorf("--oom-score-adj=%d must be between -1000 and 1000, and --max-open-files=%d not negative", s.OOMScore, s.OpenFiles)
	}
	if s.SystemGroup == "/" {
		return fmt.Errorf("--system-cgroups=/: that is where the processes are to leave")
	}
	return nil
}

// Apply does what it can. A process that may not protect itself, or open more
// files, runs all the same, as upstream's does. One that can't enter its group is
// an error: it would use what is reserved for others.
func (s Settings) Apply(logger *zap.Logger) error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(int(s.OOMScore))), 0); err != nil {
		logger.Info("the kubelet's OOM score stays as it is", zap.Int32("wanted", s.OOMScore), zap.Error(err))
	}
	if files := uint64(s.OpenFiles); files > 0 {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: files}); err != nil {
			logger.Info("how many files the kubelet may open stays as it is", zap.Uint64("wanted", files), zap.Error(err))
		}
	}
	if s.Group != "" {
		if err := cgroup.Enter(s.Group); err != nil {
			return fmt.Errorf("--kubelet-cgroups=%s: %w", s.Group, err)
		}
	}
	if s.SystemGroup != "" {
		if err := cgroup.Gather(s.SystemGroup); err != nil {
			logger.Warn("not all of the machine's processes are in their control group", zap.String("group", s.SystemGroup), zap.Error(err))
		}
	}
	return nil
}
