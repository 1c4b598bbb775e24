package aggregation

import "context"

type description struct{}

func (a *Aggregator) readDescription(context.Context, *remote) {}
