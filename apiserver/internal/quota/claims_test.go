package quota

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
)

var quotaResource = core.Resource{Version: "v1", Name: "resourcequotas", Kind: "ResourceQuota", Namespaced: true}

// slow is a store of quotas whose writes take a second. It counts them.
type slow struct {
	*registrytest.Store
	writes atomic.Int32
}

func (s *slow) Update(ctx context.Context, target registry.Target, change registry.Transform, admit registry.Admission,
	o *metav1.UpdateOptions) (registry.Encoded, bool, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return registry.Encoded{}, false, ctx.Err()
	}
	s.writes.Add(1)
	return s.Store.Update(ctx, target, change, admit, o)
}

// In finds the quotas of every namespace.
func (s *slow) In(context.Context, string) (all []*corev1.ResourceQuota, err error) {
	for _, name := range []string{"a", "b"} {
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
			case strings.HasPrefix(err.Error(), "exceeded quota: b, requested: secrets=1, used: secrets=20, limited: secrets=20"),
				strings.HasPrefix(err.Error(), "exceeded quota: a, requested: secrets=1, used: secrets=30, limited: secrets=30"):
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
		if n := quotas.writes.Load(); n > 2+2+1 { // of the first one, of all others, to undo
			t.Errorf("%d writes", n)
		}
	})
}

// TestRequestsThatAreGivenUp: others' charges don't end with the request that writes them, and
// nobody waits in the name of one that has ended.
func TestRequestsThatAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quotas, usage := limited("9")
		answers := make(chan string, 2)
		reserve := func(ctx context.Context) { answers <- fmt.Sprint(usage.Reserve(ctx, secret(false))) }
		first, giveUpFirst := context.WithCancel(t.Context())
		second, giveUpSecond := context.WithCancel(t.Context())
		go func() { _ = usage.Reserve(first, secret(false)) }() // nobody reads its answer
		synctest.Wait()
		go reserve(second)
		go reserve(t.Context())
		synctest.Wait()
		giveUpSecond()
		if got := <-answers; got != context.Canceled.Error() {
			t.Errorf("one that does not wait any longer: %s", got)
		}
		giveUpFirst()
		if got := <-answers; got != "<nil>" {
			t.Error(got)
		}
		if got := quotas.used("a"); got != "secrets=2" {
			t.Errorf("used: %s", got)
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
