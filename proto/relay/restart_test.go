package relay

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var then = time.UnixMicro(1700000000123456).UTC()

func after(d time.Duration) time.Time { return then.Add(d) }

func crash(container string, number int32) Restart {
	ended := after(time.Duration(number) * time.Hour)
	return Restart{Container: container, Number: number, Cause: CauseExit, ExitCode: 1, Reason: "Error", Ended: ended}
}

func TestEncodeDecodeRestarts(t *testing.T) {
	whole := Restart{
		Container: "web-1", Number: 3, Cause: CauseLiveness, ExitCode: 137, Reason: "Error",
		Began: after(-9 * time.Second), Ended: then, BackOffFrom: after(1 * time.Millisecond), BackOffUntil: after(10 * time.Second),
		ImagePulled: after(11 * time.Second), Created: after(12 * time.Second), Started: after(13 * time.Second), Ready: after(14 * time.Second),
	}
	want := []Restart{whole, {Container: "b", Number: 1, ExitCode: -1}}
	got, err := DecodeRestarts(EncodeRestarts(want))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got  %+v (%v)\nwant %+v", got, err, want)
	}
	odd := whole
	odd.Reason = "of a runtime's own, or/worse\r\n"
	want[0].Reason = ""
	if got, err := DecodeRestarts(EncodeRestarts([]Restart{odd})); err != nil || !slices.Equal(got, want[:1]) {
		t.Errorf("with an odd reason: %+v (%v)", got, err)
	}
	// What comes after the times that this program knows is a newer one's.
	if got, err := DecodeRestarts("a/1/exit/0/=1;2;3;4;5;6;7;8;9"); err != nil || len(got) != 1 || !got[0].Ready.Equal(time.UnixMicro(8)) {
		t.Errorf("with a ninth time: %+v (%v)", got, err)
	}
}

func TestDecodeRestartsRefuses(t *testing.T) {
	for name, value := range map[string]string{
		"no fields":        "web",
		"no container":     "/1/exit/0/Error=1",
		"upper case":       "Web/1/exit/0/Error=1",
		"long container":   strings.Repeat("a", 64) + "/1/exit/0/Error=1",
		"the first run":    "web/0/exit/0/Error=1",
		"no number":        "web/x/exit/0/Error=1",
		"a huge number":    "web/99999999999/exit/0/Error=1",
		"no exit code":     "web/1/exit//Error=1",
		"an unknown cause": "web/1/gremlins/0/Error=1",
		"a long reason":    "web/1/exit/0/" + strings.Repeat("a", 64) + "=1",
		"markup":           "web/1/exit/0/<b>=1",
		"a bad time":       "web/1/exit/0/Error=soon",
		"many times":       "web/1/exit/0/Error=" + strings.Repeat("1;", 16),
		"many restarts":    strings.TrimSuffix(strings.Repeat("web/1/exit/0/Error=1,", MaxRestarts+1), ","),
	} {
		if got, err := DecodeRestarts(value); err == nil {
			t.Errorf("%s: decoded to %+v", name, got)
		}
	}
}

// What a hostile kubelet may send, up to the megabyte that HTTP servers take, is not taken apart.
func TestLongRestartsAreNotRead(t *testing.T) {
	for name, value := range map[string]string{
		"fields": strings.Repeat("/", 1<<20), "times": "web/1/exit/0/Error=" + strings.Repeat(";", 1<<20), "restarts": strings.Repeat(",", 1<<20),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeRestarts(value)
		runtime.ReadMemStats(&after)
		if spent := after.TotalAlloc - before.TotalAlloc; err == nil || len(err.Error()) > 1<<10 || spent > 64<<10 {
			t.Errorf("%s: %d bytes are spent, for %.100v", name, spent, err)
		}
	}
}

// However often a pod's containers restart, the last of each are known.
func TestRestartsAreBounded(t *testing.T) {
	var have []Restart
	for n := int32(1); n <= 1000; n++ {
		have = Remember(have, crash("web", n))
	}
	have = Remember(have, crash("proxy", 1))
	if len(have) != MaxRestartsOfContainer+1 || have[0].Number != 997 {
		t.Errorf("%+v", have)
	}
	for n := int32(1); n <= 3; n++ {
		for c := range 40 {
			have = Remember(have, crash(fmt.Sprint("c", c), n))
		}
	}
	if len(have) != MaxRestarts {
		t.Errorf("%d are kept, want %d", len(have), MaxRestarts)
	}
	if _, err := DecodeRestarts(EncodeRestarts(have)); err != nil {
		t.Errorf("what is kept can't be sent at once: %v", err)
	}
}

// A container that has restarted once is not forgotten for those of one that crashes all the time.
func TestTheRestlessAreForgottenFirst(t *testing.T) {
	have := []Restart{crash("quiet", 1)}
	for n := int32(2); n < 50; n++ {
		for _, c := range []string{"a", "b", "c", "d", "e"} {
			have = Remember(have, crash(c, n))
		}
	}
	if !slices.Contains(have, crash("quiet", 1)) || len(have) != MaxRestarts {
		t.Errorf("%+v", have)
	}
}

func TestTwoAccountsOfARestart(t *testing.T) {
	early, late := crash("web", 1), crash("web", 1)
	early.Cause = CauseLiveness
	late.Cause, late.Began, late.Started = "", after(-time.Hour), after(2*time.Hour)
	want := late
	want.Cause = CauseLiveness
	for _, order := range [][2]Restart{{early, late}, {late, early}} {
		if got := Remember(Remember(nil, order[0]), order[1]); len(got) != 1 || got[0] != want {
			t.Errorf("%+v\nwant %+v", got, want)
		}
	}
	early.Cause, late.Cause = CauseExit, CauseSandbox // by a kubelet that has found it after a reboot
	for _, order := range [][2]Restart{{early, late}, {late, early}} {
		if got := Remember(Remember(nil, order[0]), order[1]); got[0].Cause != CauseExit || got[0].Started != late.Started {
			t.Errorf("found later: %+v", got)
		}
	}
	lost := Restart{Container: "web", Number: 1, Created: after(2 * time.Hour)} // by a kubelet that was not there
	if got := Remember([]Restart{early}, lost); got[0].ExitCode != 1 || got[0].Reason != "Error" || !got[0].Ended.Equal(early.Ended) {
		t.Errorf("how it ended is lost: %+v", got)
	}
}

func TestRestartLog(t *testing.T) {
	log := &RestartLog{}
	if got := log.Unsent(); got != nil {
		t.Errorf("nothing to send, but %v", got)
	}
	log.Note(crash("web", 1))
	first := log.Unsent()
	again := crash("web", 1)
	again.Ended, again.Cause, again.Created = after(9*time.Hour), CauseSandbox, after(5*time.Hour)
	log.Note(again)
	log.Sent(first) // of which more is known by now
	second := log.Unsent()
	want := crash("web", 1)
	want.Created = again.Created
	if !slices.Equal(second, []Restart{want}) {
		t.Errorf("%+v, want %+v", second, want)
	}
	if !slices.Equal(log.Unsent(), second) {
		t.Error("what did not arrive is not sent again")
	}
	log.Sent(second)
	if got := log.Unsent(); got != nil {
		t.Errorf("sent twice: %v", got)
	}
	for n := int32(2); n < 1000; n++ {
		log.Note(crash("web", n))
		log.Sent(log.Unsent())
	}
	if len(log.known) != MaxRestartsOfContainer || len(log.sent) != MaxRestartsOfContainer {
		t.Errorf("%d known, %d sent", len(log.known), len(log.sent))
	}
}

func FuzzDecodeRestarts(f *testing.F) {
	f.Add("web/3/liveness/137/Error=1;2;;;5;6;7;8,b/1//-1/=")
	f.Fuzz(func(t *testing.T, value string) {
		restarts, err := DecodeRestarts(value)
		if err != nil {
			return
		}
		again, err := DecodeRestarts(EncodeRestarts(restarts))
		if err != nil || !slices.Equal(restarts, again) {
			t.Errorf("%q: %v, again %v, %v", value, restarts, again, err)
		}
	})
}
