package resources_test

import (
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// TestLongLists: validating a list that fills a request body takes no time that grows with
// the square of its length. Four times as many elements take four times as long then, and
// sixteen times as long otherwise; what counts is the process's own time on a processor.
func TestLongLists(t *testing.T) {
	const few, tooLong, slack = 5_000, 8, time.Second
	b := start(t)
	for resource, build := range map[string]func(list []string) core.Object{
		"services": func(list []string) core.Object {
			s := &corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}}
			for _, text := range list {
				s.Spec.IPFamilies = append(s.Spec.IPFamilies, corev1.IPFamily(text))
			}
			return s
		},
		"pods": func(list []string) core.Object {
			p := &core.Pod{ObjectMeta: named, Spec: core.PodSpec{}}
			for _, text := range list {
				p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints,
					corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: text, WhenUnsatisfiable: corev1.DoNotSchedule})
			}
			return p
		},
		"jobs": func(list []string) core.Object {
			j := &batchv1.Job{ObjectMeta: named, Spec: batchv1.JobSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{}}}}
			for _, text := range list {
				j.Spec.Selector.MatchLabels[text] = ""
			}
			return j
		},
		"resourceslices": func(list []string) core.Object {
			half := len(list) / 2
			return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: resourcev1.ResourceSliceSpec{
				Devices: []resourcev1.Device{{Name: "d", BindingConditions: list[:half], BindingFailureConditions: list[half:]}},
			}}
		},
	} {
		t.Run(resource, func(t *testing.T) {
			i := slices.IndexFunc(b.served, func(s registry.Served) bool { return s.Resource.Info().Resource.Name == resource })
			create := func(many int) time.Duration {
				list := make([]string, many)
				for i := range list {
					list[i] = strconv.Itoa(i)
				}
				sent := build(list)
				b.served[i].Resource.Default(sent)
				runtime.GC()
				before := processorTime(t)
				if _, err := b.served[i].Resource.Create(t.Context(), sent, registry.Admission{}, &metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
					t.Errorf("answer: %.300v", err)
				}
				return processorTime(t) - before
			}
			create(few) // what is done once, and memory from the system
			if once, four := create(few), create(4*few); four > tooLong*once+slack {
				t.Errorf("%d elements take %v, four times as many %v", few, once, four)
			}
		})
	}
}

var named = metav1.ObjectMeta{Name: "x", Namespace: "default"}

// processorTime is how long the process has run on processors.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
