package flowcontrol

import (
	"cmp"
	"context"
	"fmt"
	"math"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/workload"
	"kctl/proto/core"
)

var specPath = field.NewPath("spec")

func resource(name, kind string) core.Resource {
	return core.Resource{Group: flowcontrolv1.GroupName, Version: "v1", Name: name, Kind: kind}
}

// keepGrace ignores a change of this field of metadata in their status updates;
// other kinds refuse it.
func keepGrace[T core.Object](_ context.Context, obj, old T) {
	obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
}

// Schemas is the strategy of flow schemas.
func Schemas(clock clock.PassiveClock) registry.Strategy[*flowcontrolv1.FlowSchema] {
	return registry.WithStatus(registry.Strategy[*flowcontrolv1.FlowSchema]{
		Resource: resource("flowschemas", "FlowSchema"), Singular: "flowschema",
		Default: func(s *flowcontrolv1.FlowSchema) {
			if s.Spec.MatchingPrecedence == 0 {
				s.Spec.MatchingPrecedence = 1000
			}
		},
		HasGeneration: true,
		Create: registry.CreateStrategy[*flowcontrolv1.FlowSchema]{
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, s *flowcontrolv1.FlowSchema) field.ErrorList { return validateSchema(s) },
		},
		Update: registry.UpdateStrategy[*flowcontrolv1.FlowSchema]{
			AllowUnconditional: true,
			Validate:           func(_ context.Context, s, _ *flowcontrolv1.FlowSchema) field.ErrorList { return validateSchema(s) },
		},
		Status: &registry.UpdateStrategy[*flowcontrolv1.FlowSchema]{
			KeepsMetadata: true, Prepare: keepGrace[*flowcontrolv1.FlowSchema],
			Validate: func(_ context.Context, s, _ *flowcontrolv1.FlowSchema) field.ErrorList {
				return check.ConditionTypes(s.Status.Conditions, func(c flowcontrolv1.FlowSchemaCondition) string { return string(c.Type) },
					field.NewPath("status", "conditions"))
			},
		},
		Read: registry.ReadStrategy[*flowcontrolv1.FlowSchema]{
			Columns: cell.Describe(cell.Columns(flowcontrolv1.FlowSchemaSpec{}.SwaggerDoc(),
				"Name", "PriorityLevel=priorityLevelConfiguration", "MatchingPrecedence=matchingPrecedence",
				"DistinguisherMethod=distinguisherMethod", "Age", "MissingPL",
			), map[string]string{
				"PriorityLevel": flowcontrolv1.PriorityLevelConfigurationReference{}.SwaggerDoc()["name"],
				"MissingPL":     "references a broken or non-existent PriorityLevelConfiguration",
			}),
			Row: func(s *flowcontrolv1.FlowSchema) []any {
				method, missing := cell.None, "?"
				if s.Spec.DistinguisherMethod != nil {
					method = string(s.Spec.DistinguisherMethod.Type)
				}
				for _, c := range s.Status.Conditions {
					if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
						missing = string(c.Status)
					}
				}
				return []any{
					s.Name, s.Spec.PriorityLevelConfiguration.Name, int64(s.Spec.MatchingPrecedence), method, cell.Age(clock.Now(), s.CreationTimestamp),
					missing,
				}
			},
			// As requests are matched.
			CompareRows: func(a, b *flowcontrolv1.FlowSchema) int {
				return cmp.Or(cmp.Compare(a.Spec.MatchingPrecedence, b.Spec.MatchingPrecedence), cmp.Compare(a.Name, b.Name))
			},
		},
	})
}

// Levels is the strategy of priority levels.
func Levels(clock clock.PassiveClock) registry.Strategy[*flowcontrolv1.PriorityLevelConfiguration] {
	queuing := flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()
	return registry.WithStatus(registry.Strategy[*flowcontrolv1.PriorityLevelConfiguration]{
		Resource: resource("prioritylevelconfigurations", "PriorityLevelConfiguration"), Singular: "prioritylevelconfiguration",
		Default:       defaultLevel,
		HasGeneration: true,
		Create: registry.CreateStrategy[*flowcontrolv1.PriorityLevelConfiguration]{
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, l *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
				return validateLevel(l)
			},
		},
		Update: registry.UpdateStrategy[*flowcontrolv1.PriorityLevelConfiguration]{
			AllowUnconditional: true,
			Validate: func(_ context.Context, l, _ *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
				return validateLevel(l)
			},
		},
		Status: &registry.UpdateStrategy[*flowcontrolv1.PriorityLevelConfiguration]{
			KeepsMetadata: true, Prepare: keepGrace[*flowcontrolv1.PriorityLevelConfiguration],
			Validate: func(_ context.Context, l, _ *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
				return check.ConditionTypes(l.Status.Conditions,
					func(c flowcontrolv1.PriorityLevelConfigurationCondition) string { return string(c.Type) }, field.NewPath("status", "conditions"))
			},
		},
		Read: registry.ReadStrategy[*flowcontrolv1.PriorityLevelConfiguration]{
			Columns: cell.Describe(cell.Columns(flowcontrolv1.LimitedPriorityLevelConfiguration{}.SwaggerDoc(),
				"Name", "Type", "NominalConcurrencyShares=nominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age",
			), map[string]string{
				"Type":             flowcontrolv1.PriorityLevelConfigurationSpec{}.SwaggerDoc()["type"],
				"Queues":           queuing["queues"],
				"HandSize":         queuing["handSize"],
				"QueueLengthLimit": queuing["queueLengthLimit"],
			}),
			Row: func(l *flowcontrolv1.PriorityLevelConfiguration) []any {
				var shares, queues, hand, length any = cell.None, cell.None, cell.None, cell.None
				if limited := l.Spec.Limited; limited != nil {
					shares = int64(ptr.Deref(limited.NominalConcurrencyShares, 0))
					if q := limited.LimitResponse.Queuing; q != nil {
						queues, hand, length = int64(q.Queues), int64(q.HandSize), int64(q.QueueLengthLimit)
					}
				}
				return []any{l.Name, string(l.Spec.Type), shares, queues, hand, length, cell.Age(clock.Now(), l.CreationTimestamp)}
			},
		},
	})
}

func defaultLevel(l *flowcontrolv1.PriorityLevelConfiguration) {
	if e := l.Spec.Exempt; e != nil || l.Spec.Type == flowcontrolv1.PriorityLevelEnablementExempt {
		workload.DefaultTo(&l.Spec.Exempt, flowcontrolv1.ExemptPriorityLevelConfiguration{})
		workload.DefaultTo(&l.Spec.Exempt.NominalConcurrencyShares, 0)
		workload.DefaultTo(&l.Spec.Exempt.LendablePercent, 0)
	}
	limited := l.Spec.Limited
	if limited == nil {
		return
	}
	workload.DefaultTo(&limited.NominalConcurrencyShares, 30)
	workload.DefaultTo(&limited.LendablePercent, 0)
	if limited.LimitResponse.Type == "" {
		return
	}
	if q := limited.LimitResponse.Queuing; q != nil {
		for field, value := range map[*int32]int32{&q.HandSize: 8, &q.Queues: 64, &q.QueueLengthLimit: 50} {
			if *field == 0 {
				*field = value
			}
		}
	}
}

const maxQueues = 10_000_000

func validateLevel(l *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	errs := validateMandatoryLevel(l)
	limited, exempt := specPath.Child("limited"), specPath.Child("exempt")
	switch l.Spec.Type {
	case flowcontrolv1.PriorityLevelEnablementExempt:
		if l.Spec.Limited != nil {
			errs = append(errs, field.Forbidden(limited, ""))
		}
		if e := l.Spec.Exempt; e != nil {
			errs = append(errs, validateShares(e.NominalConcurrencyShares, e.LendablePercent, exempt)...)
		}
	case flowcontrolv1.PriorityLevelEnablementLimited:
		if l.Spec.Exempt != nil {
			errs = append(errs, field.Forbidden(exempt, ""))
		}
		if l.Spec.Limited == nil {
			return append(errs, field.Required(limited, ""))
		}
		errs = append(errs, validateLimited(l.Spec.Limited, limited)...)
	default:
		errs = append(errs, validateUnknown(l)...)
	}
	return errs
}

// validateUnknown validates a level of an unknown type.
func validateUnknown(l *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	var errs field.ErrorList
	if l.Spec.Exempt != nil {
		errs = append(errs, field.Forbidden(specPath.Child("exempt"), ""))
	}
	if l.Spec.Limited != nil {
		errs = append(errs, field.Forbidden(specPath.Child("limited"), ""))
		errs = append(errs, validateResponse(&l.Spec.Limited.LimitResponse, specPath.Child("limited", "limitResponse"))...)
	}
	at := specPath.Child("type")
	if l.Spec.Type == "" {
		return append(errs, field.Required(at, ""))
	}
	unsupported := check.Supported(l.Spec.Type, at,
		flowcontrolv1.PriorityLevelEnablementExempt, flowcontrolv1.PriorityLevelEnablementLimited)
	return append(unsupported, errs...)
}

func validateShares(shares, lendable *int32, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := ptr.Deref(shares, 0); n < 0 {
		errs = append(errs, field.Invalid(at.Child("nominalConcurrencyShares"), n, "must be a non-negative integer"))
	}
	if n := ptr.Deref(lendable, 0); n < 0 || n > 100 {
		errs = append(errs, field.Invalid(at.Child("lendablePercent"), n, "must be between 0 and 100, inclusive"))
	}
	return errs
}

func validateLimited(l *flowcontrolv1.LimitedPriorityLevelConfiguration, at *field.Path) field.ErrorList {
	errs := validateShares(l.NominalConcurrencyShares, l.LendablePercent, at)
	if n := l.BorrowingLimitPercent; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(at.Child("borrowingLimitPercent"), *n, "if specified, must be a non-negative integer"))
	}
	response := at.Child("limitResponse")
	errs = append(errs, validateResponse(&l.LimitResponse, response)...)
	switch l.LimitResponse.Type {
	case "", flowcontrolv1.LimitResponseTypeReject:
	case flowcontrolv1.LimitResponseTypeQueue:
		if q := l.LimitResponse.Queuing; q != nil {
			errs = append(errs, validateQueuing(q, response.Child("queuing"))...)
		}
	default:
		errs = append(errs, check.Supported(l.LimitResponse.Type, response.Child("type"),
			flowcontrolv1.LimitResponseTypeQueue, flowcontrolv1.LimitResponseTypeReject)...)
	}
	return errs
}

// validateResponse checks that there is a queuing configuration exactly if requests
// queue.
func validateResponse(r *flowcontrolv1.LimitResponse, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.Type == "" {
		errs = append(errs, field.Required(at.Child("type"), ""))
	}
	switch queue := r.Type == flowcontrolv1.LimitResponseTypeQueue; {
	case queue && r.Queuing == nil:
		errs = append(errs, field.Required(at.Child("queuing"), ""))
	case !queue && r.Queuing != nil:
		errs = append(errs, field.Forbidden(at.Child("queuing"), ""))
	}
	return errs
}

func validateQueuing(q *flowcontrolv1.QueuingConfiguration, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if q.QueueLengthLimit <= 0 {
		errs = append(errs, field.Invalid(at.Child("queueLengthLimit"), q.QueueLengthLimit, "must be positive"))
	}
	switch {
	case q.Queues <= 0:
		errs = append(errs, field.Invalid(at.Child("queues"), q.Queues, "must be positive"))
	case q.Queues > maxQueues:
		errs = append(errs, field.Invalid(at.Child("queues"), q.Queues, fmt.Sprintf("must not be greater than %d", maxQueues)))
	}
	hand := at.Child("handSize")
	switch {
	case q.HandSize <= 0:
		errs = append(errs, field.Invalid(hand, q.HandSize, "must be positive"))
	case q.HandSize > q.Queues:
		errs = append(errs, field.Invalid(hand, q.HandSize, fmt.Sprintf("should not be greater than queues (%d)", q.Queues)))
	case handBits(q.Queues, q.HandSize) > maxHandBits:
		errs = append(errs, field.Invalid(hand, q.HandSize,
			fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d", q.Queues, q.HandSize, maxHandBits)))
	}
	return errs
}

// maxHandBits bounds the bits of a flow's hash that dealing its hand uses.
const maxHandBits = 60

// handBits is how many bits are needed to distinguish all hands of so many
// queues; it stops counting when they are too many.
func handBits(queues, hand int32) int {
	bits := 0.0
	for i := int32(0); i < hand && bits <= maxHandBits; i++ {
		bits += math.Log2(float64(queues - i))
	}
	return int(math.Ceil(bits))
}
