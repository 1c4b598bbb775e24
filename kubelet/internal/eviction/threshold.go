package eviction

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Signal is something of which the node may have too little left.
type Signal string

// The signals, by the names that configurations give them.
const (
	MemoryAvailable   Signal = "memory.available"
	NodeFSAvailable   Signal = "nodefs.available" // where the kubelet keeps volumes and logs
	NodeFSInodesFree  Signal = "nodefs.inodesFree"
	ImageFSAvailable  Signal = "imagefs.available" // where the runtime keeps images and what containers write
	ImageFSInodesFree Signal = "imagefs.inodesFree"
	PIDAvailable      Signal = "pid.available"
)

// PodsMemoryAvailable is what all pods together have left of the memory that is for
// pods. Its thresholds are the hard ones of MemoryAvailable (Kubernetes docs, "Reserve
// Compute Resources for System Daemons"); configurations don't name it.
const PodsMemoryAvailable Signal = "allocatableMemory.available"

// signals are all signals, in the order in which they are handled: the most
// dangerous for a node first.
var signals = []Signal{MemoryAvailable, PodsMemoryAvailable, NodeFSAvailable, ImageFSAvailable, NodeFSInodesFree, ImageFSInodesFree,
	PIDAvailable}

// conditions are the node's conditions while it is short.
var conditions = map[Signal]corev1.NodeConditionType{
	MemoryAvailable: corev1.NodeMemoryPressure, PodsMemoryAvailable: corev1.NodeMemoryPressure, PIDAvailable: corev1.NodePIDPressure,
	NodeFSAvailable: corev1.NodeDiskPressure, NodeFSInodesFree: corev1.NodeDiskPressure,
	ImageFSAvailable: corev1.NodeDiskPressure, ImageFSInodesFree: corev1.NodeDiskPressure,
}

// resources are the names of what the node was low on, for evicted pods.
var resources = map[Signal]string{
	MemoryAvailable: "memory", PodsMemoryAvailable: "memory", PIDAvailable: "pids",
	NodeFSAvailable: "ephemeral-storage", ImageFSAvailable: "ephemeral-storage",
	NodeFSInodesFree: "inodes", ImageFSInodesFree: "inodes",
}

// Threshold is how little may be left of something.
type Threshold struct {
	Signal Signal
	Value  Amount
	// GracePeriod is how long there may be less before a pod is evicted; zero for a hard
	// threshold.
	GracePeriod time.Duration
	// MinReclaim is how much more than Value must be free again before the node stops
	// reclaiming.
	MinReclaim Amount
}

// Amount is a quantity, or a part of what there is.
type Amount struct {
	Quantity   int64
	Percentage float64 // of one
}

func (a Amount) of(capacity int64) int64 {
	if a.Percentage > 0 {
		return int64(a.Percentage * float64(capacity))
	}
	return a.Quantity
}

func parseAmount(text string) (Amount, error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		number, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(number >= 0 && number <= 100) {
			return Amount{}, fmt.Errorf("%q is not a percentage from 0%% to 100%%", text)
		}
		return Amount{Percentage: number / 100}, nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 {
		return Amount{}, fmt.Errorf("%q is neither a quantity nor a percentage", text)
	}
	return Amount{Quantity: quantity.Value()}, nil
}

// Settings are thresholds as in configurations, by signal (KubeletConfiguration
// v1beta1, evictionHard and the like).
type Settings struct {
	Hard, Soft, SoftGrace, MinimumReclaim map[string]string
}

// DefaultHard are upstream's hard thresholds on Linux.
func DefaultHard() map[string]string {
	return map[string]string{
		string(MemoryAvailable): "100Mi",
		string(NodeFSAvailable): "10%", string(NodeFSInodesFree): "5%",
		string(ImageFSAvailable): "15%", string(ImageFSInodesFree): "5%",
	}
}

// Thresholds reads the settings, and says everything that is wrong with them.
// As upstream has it, thresholds of 0% and 100% are none.
func (s Settings) Thresholds() ([]Threshold, error) {
	var thresholds []Threshold
	var problems []error
	read := func(what string, values map[string]string, grace func(signal string) (time.Duration, error)) {
		for _, signal := range slices.Sorted(maps.Keys(values)) {
			t, err := s.threshold(signal, values[signal])
			if err == nil {
				t.GracePeriod, err = grace(signal)
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %s: %w", what, signal, err))
				continue
			}
			if t.Value.Percentage != 1 && t.Value != (Amount{}) {
				thresholds = append(thresholds, t)
				if t.Signal == MemoryAvailable && t.GracePeriod == 0 {
					t.Signal = PodsMemoryAvailable
					thresholds = append(thresholds, t)
				}
			}
		}
	}
	read("evictionHard", s.Hard, func(string) (time.Duration, error) { return 0, nil })
	read("evictionSoft", s.Soft, s.softGrace)
	for signal := range s.SoftGrace {
		if _, ok := s.Soft[signal]; !ok {
			problems = append(problems, fmt.Errorf("evictionSoftGracePeriod: %s: no soft threshold for it is set", signal))
		}
	}
	for signal, value := range s.MinimumReclaim {
		if _, err := s.threshold(signal, value); err != nil {
			problems = append(problems, fmt.Errorf("evictionMinimumReclaim: %s: %w", signal, err))
		}
	}
	slices.SortStableFunc(thresholds, func(a, b Threshold) int {
		return cmp.Compare(slices.Index(signals, a.Signal), slices.Index(signals, b.Signal))
	})
	return thresholds, errors.Join(problems...)
}

func (s Settings) threshold(signal, value string) (Threshold, error) {
	configurable := slices.DeleteFunc(slices.Clone(signals), func(s Signal) bool { return s == PodsMemoryAvailable })
	if !slices.Contains(configurable, Signal(signal)) {
		return Threshold{}, fmt.Errorf("the signal is not known; there are %v", configurable)
	}
	least, err := parseAmount(value)
	if err != nil {
		return Threshold{}, err
	}
	t := Threshold{Signal: Signal(signal), Value: least}
	if reclaim, ok := s.MinimumReclaim[signal]; ok {
		t.MinReclaim, err = parseAmount(reclaim)
	}
	return t, err
}

func (s Settings) softGrace(signal string) (time.Duration, error) {
	text, ok := s.SoftGrace[signal]
	if !ok {
		return 0, errors.New("a soft threshold needs its grace period in evictionSoftGracePeriod")
	}
	grace, err := time.ParseDuration(text)
	if err != nil || grace <= 0 {
		return 0, fmt.Errorf("the grace period %q is not a positive duration", text)
	}
	return grace, nil
}

// HardEvictionReservation is the part of the node's memory and disk that must be left, and so
// is not for pods: its hard thresholds.
func HardEvictionReservation(thresholds []Threshold, memory, disk int64) corev1.ResourceList {
	reserve := corev1.ResourceList{}
	for _, t := range thresholds {
		switch {
		case t.GracePeriod > 0:
		case t.Signal == MemoryAvailable:
			reserve[corev1.ResourceMemory] = *resource.NewQuantity(t.Value.of(memory), resource.BinarySI)
		case t.Signal == NodeFSAvailable:
			reserve[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(t.Value.of(disk), resource.BinarySI)
		}
	}
	return reserve
}
