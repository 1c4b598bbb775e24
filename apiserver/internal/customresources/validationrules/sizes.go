package validationrules

import (
	celchecker "github.com/google/cel-go/checker"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// sizes estimates the maximum size of a place's values.
type sizes struct{ self *apiservercel.DeclType }

// EstimateSize implements celchecker.CostEstimator.
func (s sizes) EstimateSize(element celchecker.AstNode) *celchecker.SizeEstimate {
	path := element.Path()
	if len(path) == 0 {
		return nil
	}
	at := s.self // for self and oldSelf alike
	for _, name := range path[1:] {
		switch name {
		case "@items", "@values":
			at = at.ElemType
		case "@keys":
			at = at.KeyType
		default:
			field, ok := at.Fields[name]
			if !ok {
				return nil
			}
			at = field.Type
		}
		if at == nil {
			return nil
		}
	}
	return &celchecker.SizeEstimate{Min: 0, Max: uint64(max(at.MaxElements, 0))}
}

// EstimateCallCost implements celchecker.CostEstimator.
func (sizes) EstimateCallCost(string, string, *celchecker.AstNode, []celchecker.AstNode) *celchecker.CallEstimate {
	return nil
}
