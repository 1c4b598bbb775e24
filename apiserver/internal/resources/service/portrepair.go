package service

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// leakRounds is in how many rounds no service may have an allocated port before it is
// released: one that is being created has its port before it is stored. Upstream's.
const leakRounds = 3

// PortRepair compares the allocated node ports with those that services have.
type PortRepair struct {
	ports *nodePortAllocator
	// unused is in how many rounds each allocated port was no service's.
	unused map[int32]int
}

// NewPortRepair returns one that has seen nothing yet.
func NewPortRepair(services *Store) *PortRepair { return &PortRepair{ports: services.ports} }

// PortProblem is what is wrong with a node port. Reason is an event's; Service is nil, and
// Reason empty, for a port that no service has.
type PortProblem struct {
	Port            int32
	Service         *corev1.Service
	Reason, Message string
}

// Round allocates the ports that services have, and releases those that none has had for
// several rounds: its server ended, or never learned what became of its write.
func (r *PortRepair) Round(ctx context.Context) ([]PortProblem, error) {
	for range portAttempts {
		// The bitmap is read first, and is written only if nobody changed it meanwhile: what is
		// allocated or released while the services are read ends this attempt.
		stored, allocated, err := r.ports.read(ctx)
		if err != nil {
			return nil, err
		}
		services, err := r.ports.services(ctx)
		if err != nil {
			return nil, fmt.Errorf("node ports in use: %w", err)
		}
		inUse, problems := r.ports.compare(allocated, services)
		unused := map[int32]int{}
		for offset := range allocated.BitLen() {
			port := int32(r.ports.ports.Base + offset)
			if allocated.Bit(offset) == 0 || inUse.Bit(offset) == 1 {
				continue
			}
			if unused[port] = r.unused[port] + 1; unused[port] <= leakRounds {
				inUse.SetBit(inUse, offset, 1)
				continue
			}
			delete(unused, port)
			problems = append(problems, PortProblem{Port: port, Message: fmt.Sprintf("Port %d appears to have leaked: cleaning up", port)})
		}
		if inUse.Cmp(allocated) != 0 {
			if err = r.ports.write(ctx, stored, inUse); lostRace(err) {
				continue
			} else if err != nil {
				return nil, err
			}
		}
		r.unused = unused
		return problems, nil
	}
	return nil, errOthersFaster
}

// compare returns the ports that services have, as a bitmap, and what is wrong with them.
func (n *nodePortAllocator) compare(allocated *big.Int, services []*corev1.Service) (inUse *big.Int, problems []PortProblem) {
	inUse = new(big.Int)
	for _, service := range services {
		tell := func(port int32, reason, format string, args ...any) {
			problems = append(problems, PortProblem{Port: port, Service: service, Reason: reason, Message: fmt.Sprintf(format, args...)})
		}
		ports := map[int32]bool{}
		for _, port := range nodePortsInUse(service) { // one for TCP and UDP is allocated once
			ports[port] = port != 0
		}
		delete(ports, 0)
		for _, port := range slices.Sorted(maps.Keys(ports)) {
			offset := int(port) - n.ports.Base
			switch {
			case !n.ports.Contains(int(port)):
				tell(port, "PortOutOfRange", "Port %d is not within the port range %s; please recreate service", port, n.ports.String())
			case inUse.Bit(offset) == 1:
				tell(port, "PortAlreadyAllocated", "Port %d was assigned to multiple services; please recreate service", port)
			case allocated.Bit(offset) == 0:
				tell(port, "PortNotAllocated", "Port %d is not allocated; repairing", port)
				fallthrough
			default:
				inUse.SetBit(inUse, offset, 1)
			}
		}
	}
	return inUse, problems
}
