package relay

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEncodeDecode(t *testing.T) {
	at := time.UnixMicro(1700000000123456).UTC()
	stamps := []Stamp{{SchedulerPopped, at}, {KubeletStarted.Of("web-1"), at.Add(time.Millisecond)}}
	got, err := Decode(Encode(stamps))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, stamps) {
		t.Errorf("got %v, want %v", got, stamps)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, value := range map[string]string{
		"no time":     "kctl.sent",
		"empty hop":   "=1",
		"bad time":    "kctl.sent=soon",
		"line break":  "kctl\n.sent=1",
		"upper case":  "KCTL=1",
		"long hop":    strings.Repeat("a", 129) + "=1",
		"many stamps": strings.TrimSuffix(strings.Repeat("a=1,", maxSent+1), ","),
	} {
		if got, err := Decode(value); err == nil {
			t.Errorf("%s: decoded to %v", name, got)
		}
	}
}

func TestStamps(t *testing.T) {
	var none *Stamps
	none.Stamp(ClientSent, time.Now())
	if none.Unsent() != nil {
		t.Error("nil Stamps recorded")
	}
	s := &Stamps{}
	first, second := time.Unix(1, 0), time.Unix(2, 0)
	s.Stamp(KubeletSeen, first)
	s.Stamp(KubeletSeen, second)
	if got := s.Unsent(); len(got) != 1 || !got[0].At.Equal(first) {
		t.Errorf("got %v, want only the first stamp of the hop", got)
	}
	if got := s.Unsent(); len(got) != 0 {
		t.Errorf("sent twice: %v", got)
	}
	for i := range 2 * MaxStamps {
		s.Stamp(KubeletStarted.Of(strings.Repeat("c", i)), second)
	}
	if n := len(s.made); n != 1+MaxStamps {
		t.Errorf("%d stamps are kept, want one and %d of containers", n, MaxStamps)
	}
	// A pod of many containers becomes ready all the same.
	s.Stamp(KubeletReady, second)
	all := s.Unsent()
	if all[len(all)-1].Hop != KubeletReady {
		t.Errorf("%s has found no room", KubeletReady)
	}
	if _, err := Decode(Encode(all)); err != nil {
		t.Errorf("what they hold can't be sent at once: %v", err)
	}
	for i := range 2 * maxSent {
		s.Stamp(Hop("x."+strings.Repeat("y", i)), second)
	}
	if n := len(s.made); n > maxSent {
		t.Errorf("%d stamps are kept, more than %d", n, maxSent)
	}
}

func TestKnown(t *testing.T) {
	for hop, want := range map[Hop]bool{
		KubeletReady: true, KubeletStarted.Of("web-1"): true,
		KubeletStarted: false, KubeletStarted.Of(""): false, KubeletStarted.Of("a/b"): false, KubeletStarted.Of("a.b"): false,
		KubeletReady.Of("web"): false, "kubelet.finished": false, "kubelet": false, "": false,
	} {
		if hop.Known() != want {
			t.Errorf("%q: %v", hop, !want)
		}
	}
	if ServerStored.Place() >= ServerWatched.Place() || KubeletStarted.Of("web").Place() <= KubeletSeen.Place() ||
		Hop("x.y").Place() <= ServerStatusRunning.Place() {
		t.Error("the places are not in the relay's order")
	}
	for _, k := range known {
		if end := k.hop.Place() >= ServerDeleting.Place(); k.hop.OfEnd() != end {
			t.Errorf("%s is of a pod's end: %v", k.hop, !end)
		}
	}
	if program := KubeletStarted.Of("web").Program(); program != "kubelet" {
		t.Errorf("program %q", program)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("kctl.sent=1,apiserver.received=2")
	f.Fuzz(func(t *testing.T, value string) {
		stamps, err := Decode(value)
		if err != nil {
			return
		}
		again, err := Decode(Encode(stamps))
		if err != nil || !slices.Equal(stamps, again) {
			t.Errorf("%q: %v, again %v, %v", value, stamps, again, err)
		}
	})
}
