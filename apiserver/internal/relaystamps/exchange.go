package relaystamps

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage"
	"kctl/proto/backoff"
	"kctl/proto/relay"
)

// Prefix is where, below the prefix of all keys, the servers' messages are in etcd.
const Prefix = "/kctl/relay/"

const (
	messageTTL = time.Minute
	// patience is how long the others have to answer. Who has not is not waited for again until
	// it has been heard of.
	patience = time.Second
	// pace bounds how often a server asks the others, as each question and each answer is written
	// to etcd, by whoever may get a pod.
	pace = 50 * time.Millisecond
	// farewell is how long the end of the server waits for the others to be told.
	farewell = time.Second
)

// Store is what carries the messages.
type Store interface {
	Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Object, error)
	Watch(ctx context.Context, prefix string, revision int64) (storage.Watch, error)
	Revision(ctx context.Context) (int64, error)
}

// Exchange puts together what all API servers of the cluster know of a pod (docs/decisions/0001). They meet
// in etcd: each watches the others' messages, which expire by themselves. An Exchange whose Run
// does not run knows its own Ring only.
type Exchange struct {
	ring   *Ring
	store  Store
	prefix string
	clock  clock.WithTicker
	logger *zap.Logger
	id     string // this process
	turn   chan struct{}
	last   time.Time // when it was somebody's turn the last time; of whose turn it is

	mu      sync.Mutex
	self    relay.Server
	left    bool // it has said bye, and asks nobody any more
	others  others
	asked   int64                   // questions
	said    int64                   // messages
	waiting map[int64]chan<- answer // for answers to a question
}

// answer is what another process knows.
type answer struct {
	id    string
	trace relay.Trace
}

// NewExchange returns the Exchange of a server that has started now.
func NewExchange(ring *Ring, store Store, prefix string, clock clock.WithTicker, logger *zap.Logger) *Exchange {
	return &Exchange{
		ring: ring, store: store, prefix: prefix, clock: clock, logger: logger, id: string(uuid.NewUUID()), turn: make(chan struct{}, 1),
		self: relay.Server{Started: clock.Now()}, others: others{}, waiting: map[int64]chan<- answer{},
	}
}

// What a message says.
const (
	hello   = "hello"   // a server has started, or has lost touch with the others
	present = "present" // to whom has said hello
	ask     = "ask"     // what do you know of this pod?
	tell    = "tell"    // what was asked
	bye     = "bye"     // a server ends
)

// message is what servers write for each other. It has the form of an object, as all that is stored.
type message struct {
	Kind       string       `json:"kind"`
	APIVersion string       `json:"apiVersion"`
	Metadata   struct{}     `json:"metadata"`
	Says       string       `json:"says"`
	ID         string       `json:"id"` // the sender's process
	From       relay.Server `json:"from"`
	To         string       `json:"to,omitempty"` // the process that has asked
	Question   int64        `json:"question,omitempty"`
	Trace      relay.Trace  `json:"trace"` // what is asked for, or told
}

// Introduce says under which name others know the server; before Run.
func (e *Exchange) Introduce(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.self.Name = name
}

// Run takes part in the exchange until ctx ends, which is no error.
func (e *Exchange) Run(ctx context.Context) error {
	for failures := 0; ; failures++ {
		listened, err := e.listen(ctx)
		if ctx.Err() != nil {
			e.mu.Lock()
			e.left = true
			e.mu.Unlock()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
			defer cancel()
			_ = e.say(last, message{Says: bye}) // if etcd is gone, the others will see
			return nil
		}
		if listened {
			failures = 0
		}
		e.logger.Debug("the exchange of stamps broke off, starting over", zap.Error(err))
		_ = backoff.Sleep(ctx, e.clock, retryPolicy.Delay(failures+1)) // cut short by the end, which is seen above
	}
}

var retryPolicy = backoff.Policy{Initial: 100 * time.Millisecond, Max: 10 * time.Second, Jitter: 0.5}

// listen follows the others' messages until that fails or ctx ends.
func (e *Exchange) listen(ctx context.Context) (listened bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	revision, err := e.store.Revision(ctx)
	if err != nil {
		return false, err
	}
	watch, err := e.store.Watch(ctx, e.prefix, revision)
	if err != nil {
		return false, err
	}
	if err := e.say(ctx, message{Says: hello}); err != nil {
		return false, err
	}
	for events := range watch.Events() {
		for _, event := range events {
			var m message
			if event.Type == storage.Added && json.Unmarshal(event.Object.Value, &m) == nil && m.ID != e.id {
				e.receive(ctx, m)
			}
		}
	}
	return true, watch.Err()
}

func (e *Exchange) say(ctx context.Context, m message) error {
	e.mu.Lock()
	e.said++
	m.Kind, m.APIVersion, m.ID, m.From = "RelayMessage", "kctl/v1", e.id, e.self
	key := e.prefix + e.id + "/" + strconv.FormatInt(e.said, 10)
	e.mu.Unlock()
	value, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode a message to the other API servers: %w", err)
	}
	_, err = e.store.Create(ctx, key, value, messageTTL)
	return err
}

// receive notes from whom a message is, and answers it.
func (e *Exchange) receive(ctx context.Context, m message) {
	e.mu.Lock()
	if m.Says == bye {
		delete(e.others, m.ID)
	} else {
		e.others.heard(m.ID, m.From)
	}
	if waits := e.waiting[m.Question]; m.Says == tell && m.To == e.id && waits != nil {
		select {
		case waits <- answer{m.ID, m.Trace}:
		default: // it has answered more than once
		}
	}
	e.mu.Unlock()
	var err error
	switch m.Says {
	case hello:
		err = e.say(ctx, message{Says: present})
	case ask:
		known, _ := e.ring.Trace(m.Trace.Namespace, m.Trace.Name)
		err = e.say(ctx, message{Says: tell, To: m.ID, Question: m.Question, Trace: known})
	}
	if err != nil {
		e.logger.Debug("another API server was not answered", zap.String("server", m.From.Name), zap.Error(err))
	}
}

// Trace returns what the servers know of a pod's relay, and which they are.
func (e *Exchange) Trace(ctx context.Context, namespace, name string) relay.Trace {
	known, ok := e.ring.Trace(namespace, name)
	if !ok {
		known = relay.Trace{Namespace: namespace, Name: name, Stamps: []relay.Stamp{}}
	}
	e.mu.Lock()
	self, alone := e.self, len(e.others) == 0
	e.mu.Unlock()
	if alone {
		known.Servers = []relay.Server{self}
		return known
	}
	traces := []relay.Trace{known}
	for _, a := range e.ask(ctx, namespace, name) {
		traces = append(traces, a.trace)
	}
	merged := merge(traces)
	e.mu.Lock()
	defer e.mu.Unlock()
	merged.Servers = append([]relay.Server{self}, e.others.servers(self, e.clock.Now())...)
	return merged
}

// pause waits until pace has passed since the last question; for whose turn it is. It reports whether
// ctx lasted so long.
func (e *Exchange) pause(ctx context.Context) bool {
	if rest := pace - e.clock.Since(e.last); rest > 0 {
		timer := e.clock.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-ctx.Done():
			return false
		}
	}
	e.last = e.clock.Now()
	return true
}

// ask asks all others that were not silent the last time, and returns their answers.
func (e *Exchange) ask(ctx context.Context, namespace, name string) []answer {
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	defer func() { <-e.turn }()
	if !e.pause(ctx) {
		return nil
	}
	e.mu.Lock()
	missing := e.others.awaited()
	if e.left { // the answers would not be heard, and the others would take this server for one that is there
		e.others.notHeard(missing, e.clock.Now())
		e.mu.Unlock()
		return nil
	}
	e.asked++
	question, answers := e.asked, make(chan answer, maxOthers)
	e.waiting[question] = answers
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.waiting, question)
		if ctx.Err() == nil { // the asker has waited until patience was over
			e.others.notHeard(missing, e.clock.Now())
		}
	}()
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := e.say(within, message{Says: ask, Question: question, Trace: relay.Trace{Namespace: namespace, Name: name}}); err != nil {
		e.logger.Debug("the other API servers could not be asked", zap.Error(err))
		return nil
	}
	var out []answer
	for len(missing) > 0 {
		select {
		case a := <-answers:
			delete(missing, a.id)
			out = append(out, a)
		case <-within.Done():
			return out
		}
	}
	return out
}
