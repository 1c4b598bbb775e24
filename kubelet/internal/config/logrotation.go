package config

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// LogRotation is how large the logs of containers may get.
type LogRotation struct {
	MaxSize  resource.Quantity // of one file
	MaxFiles int32             // of one container
	Workers  int32
	Interval time.Duration
}

func newLogRotation() LogRotation {
	return LogRotation{MaxSize: resource.MustParse("10Mi"), MaxFiles: 5, Workers: 1, Interval: 10 * time.Second}
}

func (l *LogRotation) validate(add report) {
	if l.MaxSize.Sign() <= 0 {
		add("--container-log-max-size=%s: a positive size is needed", &l.MaxSize)
	}
	if l.MaxFiles < 2 {
		add("--container-log-max-files=%d: two at least are needed, the present log and the one before", l.MaxFiles)
	}
	if l.Workers < 1 || l.Interval < 3*time.Second {
		add("containerLogMaxWorkers must be at least 1, and containerLogMonitorInterval at least 3s")
	}
}
