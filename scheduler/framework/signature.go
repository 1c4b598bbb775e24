package framework

import (
	"encoding/binary"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Sign is for a Filter or Score plugin whose answer for a node depends only on the
// NodeInfo and on what SignPod writes about the pod: not on other nodes, the time, or
// any other source. Its answer for a node then holds for all pods with the same
// signature, until the node changes. Plugins with ScoreExtensions are asked for scores
// each time (KEP-5598, whose plugins sign, too).
type Sign interface {
	Plugin
	SignPod(pod *PodInfo, to *Signature)
}

// Signature is what plugins look at in a pod. Pods with the same one are alike.
// Each value is written with its length, so that values can't run together.
type Signature []byte

// Int writes a number.
func (s *Signature) Int(v int64) { *s = binary.AppendVarint(*s, v) }

// String writes a string.
func (s *Signature) String(v string) {
	s.Int(int64(len(v)))
	*s = append(*s, v...)
}

// Strings writes strings, in their order.
func (s *Signature) Strings(all []string) {
	s.Int(int64(len(all)))
	for _, v := range all {
		s.String(v)
	}
}

// Resource writes amounts.
func (s *Signature) Resource(r *Resource) {
	for _, amount := range [...]int64{r.MilliCPU, r.Memory, r.EphemeralStorage, r.AllowedPods, int64(len(r.Scalar))} {
		s.Int(amount)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Scalar)) {
		s.String(string(name))
		s.Int(r.Scalar[name])
	}
}

// Tolerations writes tolerations, in their order.
func (s *Signature) Tolerations(tolerations []corev1.Toleration) {
	s.Int(int64(len(tolerations)))
	for i := range tolerations {
		t := &tolerations[i]
		for _, v := range [...]string{t.Key, string(t.Operator), t.Value, string(t.Effect)} {
			s.String(v)
		}
	}
}
