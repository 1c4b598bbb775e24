package relay

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Header is the HTTP request header that carries stamps.
const Header = "Kctl-Relay"

// MaxStamps bounds the stamps of a pod's containers.
const MaxStamps = 64

// maxSent bounds the stamps of one header and of one pod: there are fewer hops of the pod itself.
const maxSent = 2 * MaxStamps

// Path is where an API server answers with the Trace of a pod.
func Path(namespace, name string) string {
	return "/debug/relay/namespaces/" + namespace + "/pods/" + name
}

// Hop names a moment on a pod's way. Names are "program.moment"; a moment of
// one container has its name appended after a slash.
type Hop string

// The hops, in the order of the relay (docs/relay.md).
const (
	ClientStarted   Hop = "kctl.started"   // the command was entered
	ClientGenerated Hop = "kctl.generated" // after checks and generator
	ClientSent      Hop = "kctl.sent"      // the POST leaves

	ServerReceived      Hop = "apiserver.received"
	ServerAuthenticated Hop = "apiserver.authenticated"
	ServerAuthorized    Hop = "apiserver.authorized"
	ServerDecoded       Hop = "apiserver.decoded"   // and defaulted; its fields have their managers
	ServerMutated       Hop = "apiserver.mutated"   // mutating admission is done
	ServerValidated     Hop = "apiserver.validated" // by its own rules
	ServerAdmitted      Hop = "apiserver.admitted"  // by validating admission
	ServerStored        Hop = "apiserver.stored"    // the etcd transaction is done
	ServerWatched       Hop = "apiserver.watched"   // the watch cache has it

	SchedulerQueued    Hop = "scheduler.queued"
	SchedulerPopped    Hop = "scheduler.popped"
	SchedulerFiltered  Hop = "scheduler.filtered"
	SchedulerScored    Hop = "scheduler.scored"
	SchedulerAssumed   Hop = "scheduler.assumed"
	SchedulerPermitted Hop = "scheduler.permitted" // Reserve and Permit are done, and what Permit waits for
	SchedulerBinding   Hop = "scheduler.binding"   // the Binding POST leaves
	ServerBound        Hop = "apiserver.bound"     // the Binding is stored

	KubeletSeen           Hop = "kubelet.seen" // out of the mux
	KubeletAdmitted       Hop = "kubelet.admitted"
	KubeletWorker         Hop = "kubelet.worker" // the pod worker starts its first sync
	KubeletCgroupCreated  Hop = "kubelet.cgroup-created"
	KubeletVolumesReady   Hop = "kubelet.volumes-ready"
	KubeletSandboxCreated Hop = "kubelet.sandbox-created"
	KubeletImagePulled    Hop = "kubelet.image-pulled"      // per container
	KubeletCreated        Hop = "kubelet.container-created" // per container
	KubeletStarted        Hop = "kubelet.container-started" // per container
	KubeletRunning        Hop = "kubelet.running"           // the status says Running
	KubeletReady          Hop = "kubelet.ready"
	ServerStatusRunning   Hop = "apiserver.status-running" // the patch that says so is stored
)

// The hops of a pod's end, in the order in which a deleted pod passes them. One that ends by itself
// stays until it is deleted.
const (
	ServerDeleting  Hop = "apiserver.deleting" // the mark that it is to be deleted is stored
	KubeletStopping Hop = "kubelet.stopping"   // the pod worker starts to end it
	KubeletStopped  Hop = "kubelet.stopped"    // no container runs any more
	ServerRemoved   Hop = "apiserver.removed"  // the object is gone
)

// OfEnd reports whether the hop is one of a pod's end.
func (h Hop) OfEnd() bool {
	return h == ServerDeleting || h == KubeletStopping || h == KubeletStopped || h == ServerRemoved
}

// Of is the hop of one container of the pod.
func (h Hop) Of(container string) Hop { return h + "/" + Hop(container) }

// Stamp is one moment on a pod's way.
type Stamp struct {
	Hop Hop       `json:"hop"`
	At  time.Time `json:"at"`
}

// Trace is all that a cluster's API servers know of a pod's way, in the order of time.
type Trace struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       string    `json:"uid"` // empty if no pod of the name is known
	Stamps    []Stamp   `json:"stamps"`
	Restarts  []Restart `json:"restarts,omitempty"` // the last ones
	Servers   []Server  `json:"servers,omitempty"`  // that were asked
}

// Server is an API server that was asked what it knows of a pod.
type Server struct {
	Name    string    `json:"name"`             // HOST:PORT
	Started time.Time `json:"started"`          // it knows of nothing before
	Silent  bool      `json:"silent,omitempty"` // it has not answered
}

// Encode writes stamps as a header value: "hop=unixMicroseconds,…".
func Encode(stamps []Stamp) string {
	var b strings.Builder
	for i, s := range stamps {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(s.Hop))
		b.WriteByte('=')
		b.WriteString(strconv.FormatInt(s.At.UnixMicro(), 10))
	}
	return b.String()
}

// Decode reads a header value. It refuses values that hold more stamps than a pod
// can have, or hop names that no program could have written.
func Decode(value string) ([]Stamp, error) {
	if value == "" {
		return nil, nil
	}
	parts := strings.Split(value, ",")
	if len(parts) > maxSent {
		return nil, fmt.Errorf("%s: %d stamps; at most %d are accepted", Header, len(parts), maxSent)
	}
	stamps := make([]Stamp, 0, len(parts))
	for _, part := range parts {
		hop, at, ok := strings.Cut(part, "=")
		if !ok || !validHop(hop) {
			return nil, fmt.Errorf("%s: %q is not hop=microseconds", Header, part)
		}
		micros, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: time of %q: %w", Header, hop, err)
		}
		stamps = append(stamps, Stamp{Hop: Hop(hop), At: time.UnixMicro(micros).UTC()})
	}
	return stamps, nil
}

func validHop(hop string) bool {
	if hop == "" || len(hop) > 128 {
		return false
	}
	for _, r := range hop {
		ok := r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '/'
		if !ok {
			return false
		}
	}
	return true
}

// Stamps collects one program's stamps for one pod until they are sent. It
// keeps the first stamp of each hop. It is safe for concurrent use, and nil
// Stamps collect nothing.
type Stamps struct {
	mu   sync.Mutex
	made []Stamp
	sent int
}

// Stamp records that hop was passed at the given time, unless it has a stamp.
func (s *Stamps) Stamp(hop Hop, at time.Time) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if MayFollow(s.made, hop) {
		s.made = append(s.made, Stamp{Hop: hop, At: at})
	}
}

// Unsent returns the stamps made since the last call, and marks them sent.
func (s *Stamps) Unsent() []Stamp {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := append([]Stamp(nil), s.made[s.sent:]...)
	s.sent = len(s.made)
	return out
}

// Lost says that what was sent may not have arrived: Unsent returns it again.
func (s *Stamps) Lost() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = 0
}
