package registry_test

import (
	"errors"
	"runtime"
	"strconv"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

func TestListResourceVersions(t *testing.T) {
	b := start(t)
	first := b.create(service("a"))
	second := b.create(service("b"))
	exact, newer := metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan
	for _, c := range []struct {
		name, version string
		match         metav1.ResourceVersionMatch
		want          int
		refused       func(error) bool
	}{
		{"none", "", "", 2, nil},
		{"number", second.ResourceVersion, "", 2, nil},
		{"old number", first.ResourceVersion, "", 2, nil},
		{"not older", first.ResourceVersion, newer, 2, nil},
		{"exact", first.ResourceVersion, exact, 1, nil},
		{"exact without", "", exact, 0, apierrors.IsInvalid},
		{"exact any", "0", exact, 0, apierrors.IsInvalid},
		{"unknown match", "1", "Sometimes", 0, apierrors.IsInvalid},
		{"no number", "x", "", 0, apierrors.IsBadRequest},
		{"negative", "-1", "", 0, apierrors.IsBadRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, err := b.List(t.Context(), "ns", registry.ListOptions{ResourceVersion: c.version, ResourceVersionMatch: c.match})
			if c.refused != nil {
				if !c.refused(err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || len(list.Items) != c.want {
				t.Errorf("%d items, %v", len(list.Items), err)
			}
		})
	}
	// The cache's state will do: it was seen to have both.
	if list, err := b.List(t.Context(), "ns", registry.ListOptions{ResourceVersion: "0"}); err != nil || len(list.Items) != 2 {
		t.Errorf("any: %d items, %v", len(list.Items), err)
	}
}

func TestTooLargeResourceVersion(t *testing.T) {
	b := start(t)
	done := make(chan error, 1)
	go func() {
		_, err := b.List(t.Context(), "ns", registry.ListOptions{ResourceVersion: "99999999"})
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if !apierrors.IsTimeout(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
				t.Errorf("got %v", err)
			}
			return
		default:
			b.clock.Step(time.Second)
			runtime.Gosched()
		}
	}
}

func TestExpiredContinue(t *testing.T) {
	store, embedded := etcdtest.StartIn(t, t.TempDir())
	b := &bed{t: t, clock: clocktesting.NewFakeClock(now), storage: store}
	b.Store = registry.NewStore(strategy(), registry.Options{Storage: store, Clock: b.clock, Logger: zap.NewNop()})
	run(t, b.Store.Run)
	if err := b.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		b.create(service(name))
	}
	page, err := b.List(t.Context(), "ns", registry.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	last := b.create(service("d"))
	revision, err := strconv.ParseInt(last.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Client().Compact(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	_, err = b.List(t.Context(), "ns", registry.ListOptions{Limit: 1, Continue: page.Continue})
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) || status.Status().Continue == "" {
		t.Fatalf("got %v", err)
	}
	rest, err := b.List(t.Context(), "ns", registry.ListOptions{Continue: status.Status().Continue})
	if err != nil || len(rest.Items) != 3 {
		t.Errorf("the rest: %d items, %v", len(rest.Items), err)
	}
}

func TestWatchBegins(t *testing.T) {
	b := start(t)
	made := b.create(service("a"))
	yes, no := true, false
	newer := metav1.ResourceVersionMatchNotOlderThan
	for _, c := range []struct {
		name    string
		options registry.ListOptions
		want    string // the first event after another create
		refused bool
	}{
		{"present state", registry.ListOptions{}, "ADDED a", false},
		{"any state", registry.ListOptions{ResourceVersion: "0"}, "ADDED a", false},
		{"an end of it", registry.ListOptions{AllowBookmarks: true, Labels: labels.SelectorFromSet(labels.Set{"no": "such"})}, "BOOKMARK ", false},
		{"from a version", registry.ListOptions{ResourceVersion: made.ResourceVersion}, "ADDED new", false},
		{"no state", registry.ListOptions{SendInitialEvents: &no, ResourceVersionMatch: newer}, "ADDED new", false},
		{"state asked for", registry.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: newer, ResourceVersion: made.ResourceVersion}, "ADDED a", false},
		{"state without match", registry.ListOptions{SendInitialEvents: &yes}, "", true},
		{"match without state", registry.ListOptions{ResourceVersion: "1", ResourceVersionMatch: newer}, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := b.Watch(t.Context(), "ns", c.options)
			if c.refused {
				if !apierrors.IsInvalid(err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			fresh := b.create(service("new"))
			e := <-cache.Channel(t.Context(), w.Events())
			if got := e.Type + " " + b.read(e.Object).Name; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if _, gone := b.delete(fresh.Name, grace(0)); !gone {
				t.Fatal("not gone")
			}
		})
	}
}

func TestRows(t *testing.T) {
	b := start(t)
	s := service("a")
	s.CreationTimestamp = metav1.NewTime(now.Add(-90 * time.Minute))
	if row := b.Row(s); len(row) != 2 || row[0] != "a" || row[1] != "90m" {
		t.Errorf("row %v", row)
	}
	if row := b.Row(&corev1.Service{}); row[1] != "<unknown>" {
		t.Errorf("row %v", row)
	}
	if columns := b.Info().Columns; len(columns) != 2 || columns[0].Name != "Name" {
		t.Errorf("columns %v", columns)
	}
}
