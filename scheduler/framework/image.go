package framework

import (
	"strings"
	"sync/atomic"
)

// Image is a container image that nodes have. There is one Image for each name
// that any node reports.
type Image struct {
	Name string
	// Size in bytes, as the first node that had it reported.
	Size int64

	nodes atomic.Int64
}

// Nodes is how many nodes have the image by now.
func (i *Image) Nodes() int64 { return i.nodes.Load() }

// Count counts a node in or out, and returns how many there are then. The cache
// calls it.
func (i *Image) Count(by int64) int64 { return i.nodes.Add(by) }

// ImageName is the name under which nodes report an image that a pod names.
func ImageName(name string) string {
	if strings.LastIndexByte(name, ':') <= strings.LastIndexByte(name, '/') {
		return name + ":latest"
	}
	return name
}
