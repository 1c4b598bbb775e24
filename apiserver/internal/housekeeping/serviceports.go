package housekeeping

import (
	"context"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/service"
	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/events"
)

const (
	servicePortsName = "portallocator-repair-controller"
	// portRepairInterval, with the rounds for which a port stays, is longer than any request.
	portRepairInterval = 3 * time.Minute
)

// servicePorts makes sure that each service's node ports are allocated, and that no others
// stay so. They do when a server stops between the two writes.
type servicePorts struct {
	compare func(ctx context.Context) ([]service.PortProblem, error)
	events  registry.Resource
	clock   clock.Clock
	logger  *zap.Logger
	// told is what the last round found: it is told once, not in each round.
	told map[portProblem]bool
}

type portProblem struct {
	uid    types.UID
	port   int32
	reason string
}

// NewServicePorts is the loop that keeps services and their node ports consistent. In
// kube-apiserver, too, it belongs to the server itself: --controllers does not include it.
func NewServicePorts(d Dependencies, services *service.Store) Loop {
	return func(ctx context.Context) error {
		events, err := d.Store(core.Events)
		if err != nil {
			return err
		}
		s := &servicePorts{compare: service.NewPortRepair(services).Round, events: events, clock: d.Clock, logger: d.Logger}
		return s.run(ctx)
	}
}

func (s *servicePorts) run(ctx context.Context) error {
	for {
		if err := s.round(ctx); err != nil && ctx.Err() == nil {
			s.logger.Warn("services' node ports could not be compared with those that are allocated, trying again",
				zap.Duration("after", portRepairInterval), zap.Error(err))
		}
		if err := backoff.Sleep(ctx, s.clock, portRepairInterval); err != nil {
			return err
		}
	}
}

func (s *servicePorts) round(ctx context.Context) error {
	problems, err := s.compare(ctx)
	if err != nil {
		return err
	}
	told := map[portProblem]bool{}
	for _, p := range problems {
		if p.Service == nil {
			s.logger.Warn("a node port that no service has was released", zap.Int32("port", p.Port), zap.String("problem", p.Message))
			continue
		}
		problem := portProblem{p.Service.UID, p.Port, p.Reason}
		if told[problem] = true; !s.told[problem] {
			s.tell(ctx, p)
		}
	}
	s.told = told
	return nil
}

// tell logs what was wrong, and records upstream's event.
func (s *servicePorts) tell(ctx context.Context, p service.PortProblem) {
	s.logger.Warn("services and their node ports did not agree", zap.String("reason", p.Reason),
		zap.String("service", p.Service.Namespace+"/"+p.Service.Name), zap.String("problem", p.Message))
	event := events.New(&core.ObjectReference{
		Kind: core.Services.Kind, APIVersion: core.Services.GVK().GroupVersion().String(),
		Namespace: p.Service.Namespace, Name: p.Service.Name, UID: p.Service.UID,
	}, corev1.EventSource{Component: servicePortsName}, corev1.EventTypeWarning, p.Reason, p.Message, s.clock.Now())
	WriteEvent(ctx, s.events, registry.ServerManager, event, s.logger)
}
