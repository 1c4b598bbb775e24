package kubelet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/simulated"
)

// liar changes about a third of the answers of a runtime: one field of it becomes nothing,
// something enormous, something odd, or what another answer said there.
type liar struct {
	lies atomic.Bool
	told atomic.Int64
}

func (l *liar) lie(_ string, answer proto.Message) {
	if !l.lies.Load() || rand.IntN(3) > 0 {
		return
	}
	fields := fieldsOf(answer.ProtoReflect(), nil)
	if len(fields) == 0 {
		return
	}
	l.told.Add(1)
	fields[rand.IntN(len(fields))].lie()
}

// field is one of a message's, wherever it is nested.
type field struct {
	of protoreflect.Message
	is protoreflect.FieldDescriptor
}

func fieldsOf(m protoreflect.Message, all []field) []field {
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		all = append(all, field{m, f})
		if f.IsMap() || f.Message() == nil || !m.Has(f) {
			continue
		}
		if !f.IsList() {
			all = fieldsOf(m.Get(f).Message(), all)
			continue
		}
		for j := range m.Get(f).List().Len() {
			all = fieldsOf(m.Get(f).List().Get(j).Message(), all)
		}
	}
	return all
}

func (f field) lie() {
	switch {
	case rand.IntN(3) == 0:
		f.of.Clear(f.is)
	case f.is.IsMap():
		values := f.of.Mutable(f.is).Map()
		values.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
			if rand.IntN(2) == 0 && f.is.MapValue().Kind() == protoreflect.StringKind {
				values.Set(key, protoreflect.ValueOfString(oddString()))
			}
			return true
		})
	case f.is.IsList():
		list := f.of.Mutable(f.is).List()
		if n := list.Len(); n > 0 && rand.IntN(2) == 0 {
			for range 100 { // the same again and again
				list.Append(list.Get(rand.IntN(n)))
			}
			return
		}
		if f.is.Message() != nil {
			list.Append(list.NewElement())
		}
	default:
		if value, ok := oddValue(f.is); ok {
			f.of.Set(f.is, value)
		}
	}
}

func oddString() string {
	odd := []string{"", "x", "../../../../etc", "/etc/shadow", "\x1b[2J\x00\n", strings.Repeat("y", 1<<20), "-9223372036854775808", "99999999999999999999",
		"simulated://"}
	return odd[rand.IntN(len(odd))]
}

func oddValue(f protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
	numbers := []int64{0, -1, 1, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64}
	n := numbers[rand.IntN(len(numbers))]
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(oddString()), true
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(oddString())), true
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n < 0), true
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n)), true
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(n), true
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n)), true
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(n)), true
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n % 10)), true
	}
	return protoreflect.Value{}, false
}

// A runtime that tells lies makes pods fail, and nothing else: the kubelet stays, and once
// the truth is told again, new pods run, and those that are deleted are gone.
func TestAFaultyRuntimeThatLies(t *testing.T) {
	if !long() {
		t.Skip("skipped: waits for the kubelet's back-offs; set KCTL_LONG=1")
	}
	l := &liar{}
	b, _ := newHollowBed(t, nil, func(o *simulated.Options) { o.Lie = l.lie })
	const pods = 40
	name := func(i int) string { return fmt.Sprintf("pod-%d", i) }
	b.create(hollowPod(name(0), nil))
	b.waitPhase(name(0), corev1.PodRunning)
	l.lies.Store(true)
	for i := 1; i < pods; i++ {
		told := l.told.Load()
		b.create(hollowPod(name(i), map[string]string{simulated.ExitAfter: "20ms"}))
		b.eventually("lies about it", func() bool { return l.told.Load() > told+2 })
		if i%2 == 0 {
			b.deleteWithin(name(i/2), 1)
		}
	}
	l.lies.Store(false)
	t.Logf("%d lies were told", l.told.Load())
	b.create(hollowPod("new", nil))
	b.waitPhase("new", corev1.PodRunning)
	b.deleteWithin(name(0), 1)
	for i := pods / 2; i < pods; i++ { // those that were not deleted yet
		b.deleteWithin(name(i), 1)
	}
	for i := range pods {
		b.api.wait(name(i)+" to be gone", func() bool { return b.api.pod(name(i)) == nil })
	}
	b.eventually("the runtime to have one pod", func() bool {
		all, err := b.kubelet.machinery.state.Pods(t.Context())
		return err == nil && len(all) == 1
	})
}
