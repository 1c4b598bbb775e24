package backoff

import (
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

func TestPolicyDelay(t *testing.T) {
	p := Policy{Initial: 10 * time.Second, Max: 5 * time.Minute}
	for failures, want := range map[int]time.Duration{
		-1: 0, 0: 0, 1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second,
		5: 160 * time.Second, 6: 5 * time.Minute, 1000: 5 * time.Minute,
	} {
		if got := p.Delay(failures); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
}

func TestPolicyJitterStaysInItsRange(t *testing.T) {
	p := Policy{Initial: time.Second, Max: time.Second, Jitter: 0.5}
	seen := map[time.Duration]bool{}
	for range 100 {
		d := p.Delay(1)
		if d < time.Second || d > 1500*time.Millisecond {
			t.Fatalf("delay %s is not in [1s, 1.5s]", d)
		}
		seen[d] = true
	}
	if len(seen) < 2 {
		t.Error("100 jittered delays were all the same")
	}
}

func TestKeyed(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	k := NewKeyed[string](Policy{Initial: 10 * time.Second, Max: 5 * time.Minute}, clock)
	if k.Remaining("a") != 0 {
		t.Fatal("a key that never failed must wait")
	}
	k.Fail("a")
	if got := k.Fail("a"); got != 20*time.Second {
		t.Fatalf("second failure waits %s, want 20s", got)
	}
	clock.Step(5 * time.Second)
	if got := k.Remaining("a"); got != 15*time.Second {
		t.Errorf("5s later %s remain, want 15s", got)
	}
	if k.Remaining("b") != 0 {
		t.Error("keys are not kept apart")
	}
	clock.Step(time.Minute)
	if k.Remaining("a") != 0 {
		t.Error("the delay does not run out")
	}
	if got := k.Fail("a"); got != 40*time.Second {
		t.Errorf("the third failure waits %s, want 40s: the count must outlast the delay", got)
	}
	clock.Step(11 * time.Minute)
	if got := k.Fail("a"); got != 10*time.Second {
		t.Errorf("after a long quiet a failure waits %s, want 10s", got)
	}
	k.Reset("a")
	if k.Remaining("a") != 0 || k.Delay("a") != 0 {
		t.Error("Reset does not forget")
	}
}

func TestKeyedForgetsStaleKeys(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	k := NewKeyed[int](Policy{Initial: time.Second, Max: time.Minute}, clock)
	for i := range 1000 {
		k.Fail(i)
	}
	clock.Step(3 * time.Minute)
	k.Fail(-1)
	if n := len(k.entries); n != 1 {
		t.Errorf("%d keys are kept, want the 1 that failed lately", n)
	}
}
