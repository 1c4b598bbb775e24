package eventhandlers

import (
	"encoding/binary"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

const (
	// maxShared bounds the values of each kind that are kept for sharing; beyond
	// it, sharing starts afresh.
	maxShared = 4096
	// maxText is the longest text, in bytes, whose value is kept: longer text does
	// not come from a template, and would outlive its pod.
	maxText = 2048
)

// shared lets objects with equal parts share them in memory: most of thousands
// of pods come from a few templates, and each would have its own decoded copy.
// Parts are found by the text that they were decoded from. Shared parts are
// never changed; a *shared belongs to one goroutine.
type shared struct {
	resources   interned[corev1.ResourceList]
	labels      interned[map[string]string]
	tolerations interned[[]corev1.Toleration]
	containers  interned[[]core.Container]

	key []byte // of containers, to be used again
}

func newShared() *shared {
	return &shared{
		resources: interned[corev1.ResourceList]{}, labels: interned[map[string]string]{},
		tolerations: interned[[]corev1.Toleration]{}, containers: interned[[]core.Container]{},
	}
}

// interned are values by the JSON that they were decoded from.
type interned[V any] map[string]V

// of decodes text, unless that has been done before; no text gives no value.
func (m interned[V]) of(text []byte) (value V, err error) {
	if len(text) == 0 {
		return value, nil
	}
	value, known := m[string(text)]
	if known {
		return value, nil
	}
	if err := core.Decode(text, &value); err != nil {
		return value, err
	}
	m.keep(text, value)
	return value, nil
}

func (m interned[V]) keep(text []byte, value V) {
	if len(text) > maxText {
		return
	}
	if len(m) >= maxShared {
		clear(m)
	}
	m[string(text)] = value
}

// containersOf are containers with what they are counted and placed by.
func (s *shared) containersOf(encoded []wireContainer) ([]core.Container, error) {
	if len(encoded) == 0 {
		return nil, nil
	}
	s.key = s.key[:0]
	for i := range encoded {
		c := &encoded[i]
		for _, part := range [...]string{c.Name, c.Image, c.RestartPolicy} {
			s.key = append(binary.AppendUvarint(s.key, uint64(len(part))), part...)
		}
		for _, part := range [...][]byte{c.Ports, c.Resources.Requests, c.Resources.Limits} {
			s.key = append(binary.AppendUvarint(s.key, uint64(len(part))), part...)
		}
	}
	if known, ok := s.containers[string(s.key)]; ok {
		return known, nil
	}
	containers := make([]core.Container, len(encoded))
	for i := range encoded {
		if err := s.decodeContainer(&encoded[i], &containers[i]); err != nil {
			return nil, err
		}
	}
	s.containers.keep(s.key, containers)
	return containers, nil
}

func (s *shared) decodeContainer(w *wireContainer, c *core.Container) (err error) {
	c.Name, c.Image = w.Name, w.Image
	if w.RestartPolicy != "" {
		policy := corev1.ContainerRestartPolicy(w.RestartPolicy)
		c.RestartPolicy = &policy
	}
	if len(w.Ports) > 0 {
		if err := core.Decode(w.Ports, &c.Ports); err != nil {
			return err
		}
	}
	if c.Resources.Requests, err = s.resources.of(w.Resources.Requests); err != nil {
		return err
	}
	c.Resources.Limits, err = s.resources.of(w.Resources.Limits)
	return err
}
