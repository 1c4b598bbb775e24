package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
)

// Pressure is how long tasks have waited for scarce resources (PSI, KEP-4205); nil if the
// kernel does not report it.
type Pressure struct{ CPU, Memory, IO *cgroups.PSIStats }

// MachinePressure is the pressure of all tasks of the machine.
func MachinePressure() (Pressure, error) { return pressureIn("/proc/pressure", "") }

// pressureOf is a group's pressure, read from its directory: there is none with cgroup
// v1.
func pressureOf(dir string) (Pressure, error) {
	if !cgroups.IsCgroup2UnifiedMode() {
		return Pressure{}, nil
	}
	return pressureIn(dir, ".pressure")
}

func pressureIn(dir, suffix string) (p Pressure, err error) {
	var failed []error
	for name, to := range map[string]**cgroups.PSIStats{"cpu": &p.CPU, "memory": &p.Memory, "io": &p.IO} {
		text, err := os.ReadFile(filepath.Join(dir, name+suffix))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EOPNOTSUPP) { // built without it, or psi=0
			continue
		}
		if err == nil {
			*to, err = parsePressure(string(text))
		}
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return p, fmt.Errorf("asking for what tasks wait: %w", err)
	}
	return p, nil
}

// parsePressure reads lines as of /proc/pressure/cpu.
func parsePressure(text string) (*cgroups.PSIStats, error) {
	var all cgroups.PSIStats
	for line := range strings.Lines(text) {
		whose, figures, _ := strings.Cut(line, " ")
		to, known := map[string]*cgroups.PSIData{"some": &all.Some, "full": &all.Full}[whose]
		if !known {
			continue
		}
		if _, err := fmt.Sscanf(figures, "avg10=%f avg60=%f avg300=%f total=%d", &to.Avg10, &to.Avg60, &to.Avg300, &to.Total); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
	}
	return &all, nil
}
