package quota

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
)

var quotaResource = core.Resource{Version: "v1", Name: "resourcequotas", Kind: "ResourceQuota", Namespaced: true}

// slow is a store of quotas whose writes take a second. It counts them.
type slow struct {
	*registrytest.Store
	writes atomic.Int32
	fails  atomic.Bool // the next one panics
}

func (s *slow) Update(ctx context.Context, target registry.Target, change registry.Transform, admit registry.Admission,
	o *metav1.UpdateOptions) (registry.Encoded, bool, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return registry.Encoded{}, false, ctx.Err()
	}
	s.writes.Add(1)
	if s.fails.Swap(false) {
		panic("a fault")
	}
	return s.Store.Update(ctx, target, change, admit, o)
}

// In finds the quotas of every namespace.
func (s *slow) In(context.Context, string) (all []*corev1.ResourceQuota, err error) {
	for _, name := range []string{"a", "b", "c"} {
		if q, ok := s.Peek("shop", name).(*corev1.ResourceQuota); ok {
			all = append(all, q)
		}
	}
	return all, nil
}

func (*slow) Forget(string) {}

func (s *slow) used(name string) string {
	return shown(s.Peek("shop", name).(*corev1.ResourceQuota).Status.Used)
}

// limited are quotas "a", "b" and so on that each allow a number of secrets.
func limited(limits ...string) (*slow, *Usage) {
	s := &slow{Store: registrytest.New(quotaResource)}
	for i, limit := range limits {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: string(rune('a' + i))}}
		q.Spec.Hard = corev1.ResourceList{"secrets": resource.MustParse(limit)}
		q.UID = types.UID(q.Name)
		s.Put(q)
	}
	return s, NewUsage(Options{Quotas: s, Store: s, Stores: func() []registry.Resource { return nil }, Clock: clock.RealClock{}})
}

func secret(dry bool) Change {
	return Change{Resource: core.Secrets.GVR().GroupResource(), Namespace: "shop", New: &core.Secret{}, DryRun: dry}
}

// TestManyRequestsShareWrites: those that wait for the first one's write are served by one more
// for each quota, and exactly as many pass as have room in both.
func TestManyRequestsShareWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quotas, usage := limited("30", "20")
		answers := make(chan error, 40)
		for i := range 40 {
			go func() { answers <- usage.Reserve(t.Context(), secret(i%10 == 9)) }()
		}
		made, refused := 0, 0
		for range 40 {
			switch err := <-answers; {
			case err == nil:
				made++
			case err.Error() == "exceeded quota: b, requested: secrets=1, used: secrets=20, limited: secrets=20":
				refused++
			default:
				t.Error(err)
			}
		}
		if made < 20 || made > 24 || made+refused != 40 { // of the four that are dry, those pass that come early
			t.Errorf("%d were made and %d refused", made, refused)
		}
		if a, b := quotas.used("a"), quotas.used("b"); a != "secrets=20" || b != "secrets=20" {
			t.Errorf("used: %s of a, %s of b", a, b)
		}
		if n := quotas.writes.Load(); n > 2+3+3 { // of the first one, of all others, of those for which "a" had no room; each with one to undo
			t.Errorf("%d writes", n)
		}
	})
}

// TestRequestsThatAreGivenUp: others' charges don't end with the request that writes them, and
// nobody writes for requests that have all ended.
func TestRequestsThatAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quotas, usage := limited("9")
		var answers sync.Map
		reserve := func(name string) (giveUp func()) {
			ctx, cancel := context.WithCancel(t.Context())
			go func() { answers.Store(name, fmt.Sprint(usage.Reserve(ctx, secret(false)))) }()
			synctest.Wait()
			return cancel
		}
		giveUpFirst := reserve("first")
		giveUpSecond, giveUpThird := reserve("second"), reserve("third")
		_ = reserve("fourth")
		giveUpThird()
		synctest.Wait()
		if got, _ := answers.Load("third"); got != context.Canceled.Error() {
			t.Errorf("one that does not wait any longer: %q", got)
		}
		giveUpFirst()
		synctest.Wait()
		if got, _ := answers.Load("first"); got != context.Canceled.Error() {
			t.Errorf("the one that writes for itself alone: %q", got)
		}
		giveUpSecond()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got, _ := answers.Load("fourth"); got != "<nil>" {
			t.Errorf("one for which another writes: %q", got)
		}
		if got := quotas.used("a"); got != "secrets=2" {
			t.Errorf("used: %s", got)
		}
	})
}

// TestRoomIsNotLostToOthers: nobody is refused for room that is taken by a request which another quota
// refuses.
func TestRoomIsNotLostToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quotas, usage := limited("9", "1", "0")
		for name, counts := range map[string]corev1.ResourceName{"b": "count/pods", "c": "pods"} {
			q := quotas.Peek("shop", name).(*corev1.ResourceQuota)
			q.Spec.Hard = corev1.ResourceList{counts: q.Spec.Hard["secrets"]}
			quotas.Put(q)
		}
		pod := func(phase corev1.PodPhase) Change {
			return Change{Resource: pods, Namespace: "shop", New: &core.Pod{Status: corev1.PodStatus{Phase: phase}}}
		}
		go func() { _ = usage.Reserve(t.Context(), secret(false)) }() // the others wait for it
		synctest.Wait()
		refused, made := make(chan error, 1), make(chan error, 1)
		go func() { refused <- usage.Reserve(t.Context(), pod(corev1.PodRunning)) }()
		synctest.Wait()
		go func() { made <- usage.Reserve(t.Context(), pod(corev1.PodSucceeded)) }() // counts in "b" only
		if err := <-refused; err == nil || !strings.HasPrefix(err.Error(), "exceeded quota: c") {
			t.Error(err)
		}
		if err := <-made; err != nil {
			t.Error(err)
		}
		if got := quotas.used("b"); got != "count/pods=1" {
			t.Errorf("used: %s", got)
		}
		if kept := len(usage.reservations.byQuota); kept != 2 { // of the first one, and of the one that was made
			t.Errorf("%d quotas have reservations", kept)
		}
	})
}

// TestFaultInTheTurnOfARequest: it ends the others that were to be charged with it, and keeps nobody from
// the next turn.
func TestFaultInTheTurnOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quotas, usage := limited("9")
		var failed, panicked atomic.Int32
		for range 3 {
			go func() {
				defer func() {
					if recover() != nil {
						panicked.Add(1)
					}
				}()
				if usage.Reserve(t.Context(), secret(false)) != nil {
					failed.Add(1)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(1500 * time.Millisecond) // the second one writes for the third
		quotas.fails.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		if failed.Load() != 1 || panicked.Load() != 1 || len(usage.locks.locks) != 0 {
			t.Errorf("%d failed, %d panicked, %d locks are left", failed.Load(), panicked.Load(), len(usage.locks.locks))
		}
		key := informer.Key{Namespace: "shop", Name: "a"}
		if sum := usage.reservations.sum(key); shown(sum) != "secrets=1" {
			t.Errorf("reserved: %s", shown(sum))
		}
	})
}

// TestDryRunsChargeNothing: but they are refused as if they did.
func TestDryRunsChargeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quotas, usage := limited("1")
		for range 2 {
			if err := usage.Reserve(t.Context(), secret(true)); err != nil {
				t.Error(err)
			}
		}
		if err := usage.Reserve(t.Context(), secret(false)); err != nil {
			t.Error(err)
		}
		if err := usage.Reserve(t.Context(), secret(true)); err == nil {
			t.Error("there was no room for it")
		}
		if got := quotas.used("a"); got != "secrets=1" {
			t.Errorf("used: %s", got)
		}
	})
}
