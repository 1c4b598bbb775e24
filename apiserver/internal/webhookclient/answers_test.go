package webhookclient

import (
	"fmt"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

func TestAnswers(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	a := NewAnswers[int](clock)
	a.Put("short", 1, time.Second)
	a.Put("long", 2, time.Hour)
	clock.SetTime(time.Unix(1, 0))
	if _, ok := a.Get("short"); ok {
		t.Error("an answer counts for too long")
	}
	if says, ok := a.Get("long"); says != 2 || !ok {
		t.Errorf("%d %v", says, ok)
	}
	for i := range maxAnswers + 100 {
		a.Put(fmt.Sprint(i), i, time.Hour)
	}
	if len(a.entries) > maxAnswers {
		t.Errorf("%d answers are remembered", len(a.entries))
	}
}
