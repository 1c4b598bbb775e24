package workloads

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/doctor"
)

// Who waits for a rollout that no controller has begun is told so, once it has lasted.
func TestWarnUnheard(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "shop", "generation": int64(2)},
	}}
	for name, test := range map[string]struct{ unheard, warns bool }{"unheard": {true, true}, "taken up": {false, false}} {
		said, clock := &heard{at: make(chan struct{})}, clocktesting.NewFakeClock(time.Unix(0, 0))
		r := &rolloutOptions{Sender: send.Sender{CLI: frame.New(frame.Streams{In: strings.NewReader(""), Out: io.Discard, Err: said}, clock)}}
		var unheard atomic.Bool
		unheard.Store(test.unheard)
		stop := r.warnUnheard(object, &unheard)
		clock.Step(doctor.Patience)
		if test.warns {
			<-said.at
		}
		stop()
		if warned := strings.Contains(said.text, `no controller has taken up deployment "shop"`); warned != test.warns {
			t.Errorf("%s: it said %q", name, said.text)
		}
	}
}

// heard keeps what is written first.
type heard struct {
	text string
	at   chan struct{}
}

func (h *heard) Write(p []byte) (int, error) {
	h.text = string(p)
	close(h.at)
	return len(p), nil
}
