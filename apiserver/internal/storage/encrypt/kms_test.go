package encrypt

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/identity"
)

func TestKMS(t *testing.T) {
	s := startKMS(t)
	config := providers(kmsOf(s, "mine"))
	tr := mustTransformer(t, config)
	k := tr.current.Load().kms[0]
	values := map[string][]byte{}
	seal := func(at string) {
		t.Helper()
		sealed, err := tr.Seal(t.Context(), at, []byte("text"))
		if err != nil {
			t.Fatal(err)
		}
		values[at] = sealed
	}
	for _, name := range []string{"a", "b", "c"} {
		seal("/registry/secrets/d/" + name)
	}
	if s.set(func() {}); s.encrypted != 1 {
		t.Errorf("the service was asked for %d seeds", s.encrypted)
	}
	if err := tr.Check(t.Context()); err != nil {
		t.Errorf("healthy: %v", err)
	}
	s.set(func() { s.keyID = "2" })
	if err := k.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for at, sealed := range values {
		if plain, stale, err := tr.Open(t.Context(), at, sealed); err != nil || !stale || string(plain) != "text" {
			t.Errorf("after the key changed: %q, stale %v, %v", plain, stale, err)
		}
	}
	seal(place)
	restarted := mustTransformer(t, config)
	for at, sealed := range values {
		if plain, _, err := restarted.Open(t.Context(), at, sealed); err != nil || string(plain) != "text" {
			t.Errorf("after a restart: %q %v", plain, err)
		}
	}
	s.set(func() {
		if s.decrypted > 3 {
			t.Errorf("two seeds were opened by %d calls", s.decrypted)
		}
		s.away = true
	})
	if err := k.refresh(t.Context()); err == nil || tr.Check(t.Context()) == nil {
		t.Error("a service that is away is said to be well")
	}
	if _, _, err := restarted.Open(t.Context(), place, values[place]); err != nil {
		t.Errorf("a remembered seed needs the service: %v", err)
	}
	fresh := mustTransformer(t, config)
	if _, _, err := fresh.Open(t.Context(), place, values[place]); err == nil {
		t.Error("opened without the service")
	}
	if _, err := fresh.Seal(t.Context(), place, nil); err == nil {
		t.Error("sealed without the service")
	}
}

// TestKMSWhoseKeyChanges: what was sealed by the last key can be read without the
// service, and a service that is in between of two keys has none: the last one is used
// as long as it is valid.
func TestKMSWhoseKeyChanges(t *testing.T) {
	s := startKMS(t)
	tr := mustTransformer(t, providers(kmsOf(s, "mine")))
	k := tr.current.Load().kms[0]
	seal := func() ([]byte, string) {
		t.Helper()
		sealed, err := tr.Seal(t.Context(), place, []byte("text"))
		if err != nil {
			t.Fatal(err)
		}
		of, _, err := parseEnvelope(bytes.TrimPrefix(sealed, []byte("k8s:enc:kms:v2:mine:")))
		if err != nil {
			t.Fatal(err)
		}
		return sealed, of.keyID
	}
	first, _ := seal()
	s.set(func() { s.keyID, s.sealsBy = "2", "3" })
	if err := k.refresh(t.Context()); err == nil || tr.Check(t.Context()) == nil {
		t.Error("it says that its key is 2 and seals with 3, and is said to be well")
	}
	if _, by := seal(); by != "1" {
		t.Errorf("sealed with key %s", by)
	}
	s.set(func() { s.sealsBy = "" })
	if err := k.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, by := seal(); by != "2" {
		t.Errorf("sealed with key %s after it has changed", by)
	}
	s.set(func() { s.away = true })
	if plain, stale, err := tr.Open(t.Context(), place, first); err != nil || !stale || string(plain) != "text" {
		t.Errorf("sealed before the key changed: %q, stale %v, %v", plain, stale, err)
	}
}

// TestKMSAnnotations: names without a domain would make values that kube-apiserver does
// not read.
func TestKMSAnnotations(t *testing.T) {
	s := startKMS(t)
	s.set(func() { s.note = "note" })
	if sealed, err := mustTransformer(t, providers(kmsOf(s, "mine"))).Seal(t.Context(), place, []byte("text")); err == nil ||
		!strings.Contains(err.Error(), "annotation") {
		t.Errorf("sealed as %q, %v", sealed, err)
	}
}

// TestKMSThatTakesTooLong: an answer that comes when it is no longer valid is none.
func TestKMSThatTakesTooLong(t *testing.T) {
	s := startKMS(t)
	now := testingclock.NewFakeClock(time.Unix(1000, 0))
	s.set(func() { s.asks = func() { now.Step(seedLifetime) } })
	ctx, end := context.WithCancel(t.Context())
	k, err := newKMS(ctx, &kmsConfig{Name: "slow", Endpoint: s.endpoint, Timeout: &metav1.Duration{Duration: 2 * seedLifetime}}, now,
		newMetrics(prometheus.NewRegistry()), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if sealed, err := k.seal(t.Context(), []byte(place), nil); err == nil {
		t.Errorf("sealed as %q", sealed)
	}
}

// TestCloseDelay: the connections of a replaced configuration stay for as long as its
// timeouts allow calls to take.
func TestCloseDelay(t *testing.T) {
	away := &service{endpoint: "unix:///no/such/socket"}
	patient := strings.Replace(kmsOf(away, "patient"), "}", ", timeout: 30s}", 1)
	for _, c := range []struct {
		lines []string
		want  time.Duration
	}{
		{[]string{"identity: {}"}, 10 * time.Second},
		{[]string{kmsOf(away, "a")}, 10 * time.Second},
		{[]string{kmsOf(away, "a"), patient}, 66 * time.Second},
	} {
		if got := mustTransformer(t, providers(c.lines...)).current.Load().closeDelay(); got != c.want {
			t.Errorf("%v: %v, want %v", c.lines, got, c.want)
		}
	}
}

// TestMetricsOfKMS: which key is used is seen by its hash, and how the service answers.
func TestMetricsOfKMS(t *testing.T) {
	s := startKMS(t)
	config := providers(kmsOf(s, "mine"))
	sealed, err := mustTransformer(t, config).Seal(t.Context(), place, []byte("text"))
	if err != nil {
		t.Fatal(err)
	}
	tr := mustTransformer(t, config)
	k, m := tr.current.Load().kms[0], tr.metrics
	for range 2 {
		if _, _, err := tr.Open(t.Context(), place, sealed); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.set(func() { s.keyID = strings.Repeat("x", maxKeyID+1) })
	if err := k.refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("%v", err)
	}
	hash := identity.Hash("1")
	if n := testutil.ToFloat64(m.keyUses.WithLabelValues(fromStorage, "mine", hash)); n != 2 {
		t.Errorf("the key was used %v times", n)
	}
	if testutil.ToFloat64(m.keyUsed.WithLabelValues(fromStorage, "mine", hash)) == 0 || testutil.ToFloat64(m.keyNamed.WithLabelValues("mine", hash)) == 0 {
		t.Error("when the key was used and named is not said")
	}
	if n := testutil.ToFloat64(m.misses); n != 1 {
		t.Errorf("%v seeds were opened by the service", n)
	}
	if testutil.ToFloat64(m.keyFaults.WithLabelValues("mine", "too_long")) == 0 {
		t.Error("the wrong key is not counted")
	}
	if !m.calls.DeleteLabelValues("mine", "/v2.KeyManagementService/Decrypt", "OK") {
		t.Error("the call is not timed")
	}
	for i := range countedKeys + 1 {
		m.keyHasBeenUsed(fromStorage, "other", strings.Repeat("y", i), k.clock.Now())
	}
	if n := testutil.CollectAndCount(m.keyUses); n != countedKeys {
		t.Errorf("%d keys are told apart", n)
	}
}

// TestKeysAreBounded: also when many are used at the same time.
func TestKeysAreBounded(t *testing.T) {
	m := newMetrics(prometheus.NewRegistry())
	var users sync.WaitGroup
	for user := range 400 {
		users.Go(func() {
			for i := range 50 {
				m.keyHasBeenUsed(fromStorage, "mine", fmt.Sprint(user, " ", i), time.Unix(1000, 0))
			}
		})
	}
	users.Wait()
	if uses, times := testutil.CollectAndCount(m.keyUses), testutil.CollectAndCount(m.keyUsed); uses != countedKeys || times != countedKeys {
		t.Errorf("%d and %d keys are told apart", uses, times)
	}
}
