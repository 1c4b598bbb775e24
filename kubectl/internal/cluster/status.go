package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ProgramStatus is how one of the cluster's programs is.
type ProgramStatus struct {
	Name    string        `json:"name"`
	PID     int           `json:"pid,omitempty"` // 0: not running
	Ready   bool          `json:"ready"`
	Reason  string        `json:"reason,omitempty"` // why it is not ready
	Uptime  time.Duration `json:"uptime,omitempty"`
	RSS     int64         `json:"rss,omitempty"` // bytes of memory in use
	Address string        `json:"address,omitempty"`
}

// Status is how a cluster on this machine is.
type Status struct {
	Dir      string          `json:"dir"`
	Server   string          `json:"server"`
	Node     string          `json:"node"`
	Programs []ProgramStatus `json:"programs"`
}

// GetStatus looks at the cluster in dir.
func GetStatus(ctx context.Context, dir string) (*Status, error) {
	l, err := NewLayout(dir)
	if err != nil {
		return nil, err
	}
	s, err := loadSettings(l)
	if err != nil {
		return nil, err
	}
	all, err := programs(l, s, UpOptions{})
	if err != nil {
		return nil, err
	}
	addresses := map[string]string{
		Registry: s.registry(), Containerd: l.Socket(), Apiserver: s.server(),
		Scheduler: "127.0.0.1:" + strconv.Itoa(s.SchedulerPort), Kubelet: "127.0.0.1:" + strconv.Itoa(s.KubeletPort),
	}
	status := &Status{Dir: l.Dir, Server: s.server(), Node: s.NodeName}
	for _, name := range Parts {
		p := ProgramStatus{Name: name, Address: addresses[name], PID: l.pid(name)}
		if p.PID == 0 {
			p.Reason = "not running"
		} else {
			p.Uptime, p.RSS = processFacts(p.PID)
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			err := all[name].ready(ctx)
			cancel()
			p.Ready = err == nil
			if err != nil {
				p.Reason = err.Error()
			}
		}
		status.Programs = append(status.Programs, p)
	}
	return status, nil
}

// processFacts are how long a process runs and how much memory it uses.
func processFacts(pid int) (uptime time.Duration, rss int64) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	if info, err := os.Stat(proc); err == nil {
		uptime = time.Since(info.ModTime()).Round(time.Second)
	}
	data, err := os.ReadFile(filepath.Join(proc, "statm"))
	if err != nil {
		return uptime, 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(strings.TrimSpace(string(data)), &size, &resident); err != nil {
		return uptime, 0
	}
	return uptime, resident * int64(os.Getpagesize())
}
