package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kctl/kubectl/internal/shell"
)

// ProgramStatus is the state of one of the cluster's programs.
type ProgramStatus struct {
	Name    string        `json:"name"`
	PID     int           `json:"pid,omitempty"` // 0: not running
	Ready   bool          `json:"ready"`
	Without bool          `json:"without,omitempty"` // not running, as it was asked for
	Reason  string        `json:"reason,omitempty"`  // why it is not ready
	Uptime  time.Duration `json:"uptime,omitempty"`
	RSS     int64         `json:"rss,omitempty"` // bytes of memory in use
	Address string        `json:"address,omitempty"`
}

// Status is the state of a cluster on this machine.
type Status struct {
	Dir      string          `json:"dir"`
	Server   string          `json:"server"`
	Node     string          `json:"node"`
	Programs []ProgramStatus `json:"programs"`
}

// GetStatus looks at the cluster in dir.
func GetStatus(ctx context.Context, dir string) (*Status, error) {
	l, err := newLayout(dir)
	if err != nil {
		return nil, err
	}
	s, err := loadSettings(l)
	if err != nil {
		return nil, err
	}
	all, err := programs(l, s, s.asBefore())
	if err != nil {
		return nil, err
	}
	status := &Status{Dir: l.Dir, Server: s.server(), Node: s.NodeName}
	for _, name := range Parts {
		p := ProgramStatus{Name: name, Address: all[name].address, PID: l.pid(name)}
		switch {
		case p.PID == 0 && slices.Contains(s.Without, name):
			p.Without = true
		case p.PID == 0:
			p.Reason = "not running"
		default:
			p.Uptime, p.RSS = processFacts(p.PID)
			ctx, cancel := context.WithTimeout(ctx, statusWithin)
			err := all[name].ready(ctx)
			cancel()
			p.Ready, p.Reason = err == nil, l.whyNotReady(p.PID, err)
		}
		status.Programs = append(status.Programs, p)
	}
	return status, nil
}

// statusWithin is how long a program may take to say how it is.
const statusWithin = 3 * time.Second

// whyNotReady says what a program that runs has answered, or, of one that does not, what
// to do.
func (l Layout) whyNotReady(pid int, err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %s; if it hangs, end it with `kill -9 %d`, and \"kctl up --dir %s\" starts it anew",
			statusWithin, pid, shell.Word(l.Dir))
	}
	return err.Error()
}

// ticksPerSecond is USER_HZ, in which /proc counts; it is 100 on every Linux
// that Go runs on.
const ticksPerSecond = 100

// processFacts are how long a process has been running and how much memory it
// uses; zero for what /proc does not say.
func processFacts(pid int) (uptime time.Duration, rss int64) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return 0, 0
	}
	// The command's name stands in brackets and may hold anything; what counts
	// comes after them (proc(5)): starttime is field 22, rss field 24.
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 22 {
		return 0, 0
	}
	started, _ := strconv.ParseInt(fields[19], 10, 64)
	pages, _ := strconv.ParseInt(fields[21], 10, 64)
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err == nil {
		uptime = time.Duration(now.Nano()) - time.Duration(started)*time.Second/ticksPerSecond
	}
	return uptime.Round(time.Second), pages * int64(os.Getpagesize())
}
