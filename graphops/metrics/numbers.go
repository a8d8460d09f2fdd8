package metrics

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
)

// Numbers are the metrics of predicted numbers that the library has. Rows have one target or several; a target that is NaN is
// missing and not counted. All known targets count as much.
var Numbers = []Metric{MAEMetric, RMSEMetric, R2Metric, NMAEMetric}

// The metrics of numbers, of n known targets y, their mean ȳ and the predictions p. All sums are exact, so that the order of the
// rows, and which rank has which, changes no bit.
var (
	// MAEMetric is the mean absolute error Σ|y-p|/n.
	MAEMetric = Metric{Name: "mae", Title: "MAE", Lower: true, Format: "%.5g", New: func(int) Tally { return &errorsOf{of: (*errorsOf).mae} }}
	// RMSEMetric is the root of the mean squared error, √(Σ(y-p)²/n).
	RMSEMetric = Metric{Name: "rmse", Title: "RMSE", Lower: true, Format: "%.5g", New: func(int) Tally { return &errorsOf{of: (*errorsOf).rmse} }}
	// R2Metric is the coefficient of determination 1 - Σ(y-p)²/Σ(y-ȳ)², as sklearn.metrics.r2_score of one target. It is NaN if all
	// targets are equal.
	R2Metric = Metric{Name: "r2", Title: "R²", New: func(int) Tally { return &errorsOf{of: (*errorsOf).r2} }}
	// NMAEMetric is the mean absolute error divided by the standard deviation of the targets, √(Σ(y-ȳ)²/n): it has no unit. It is
	// NaN if all targets are equal.
	NMAEMetric = Metric{Name: "nmae", Title: "NMAE", Lower: true, New: func(int) Tally { return &errorsOf{of: (*errorsOf).nmae} }}
)

// errorsOf sums the errors of predicted numbers, and their targets.
type errorsOf struct {
	of                                  func(*errorsOf) float64
	n                                   int64
	absolute, squared, targets, squares exactSum
}

func (s *errorsOf) Add(row []float32, known Answer) {
	for c, y := range known.Numbers {
		if y != y {
			continue
		}
		// Squares of float32 are exact in float64; a difference is rounded alike whatever the order.
		d := float64(y) - float64(row[c])
		s.n++
		s.absolute.add(math.Abs(d))
		s.squared.add(d * d)
		s.targets.add(float64(y))
		s.squares.add(float64(y) * float64(y))
	}
}

func (s *errorsOf) Value() (value float64, count int64) {
	if s.n == 0 {
		return math.NaN(), 0
	}
	return s.of(s), s.n
}

func (s *errorsOf) Encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(s.n))
	for _, x := range s.sums() {
		b = x.encode(b)
	}
	return b
}

func (s *errorsOf) Merge(b []byte) (err error) {
	if len(b) < 8 {
		return fmt.Errorf("metrics: %d bytes are not the errors of another rank", len(b))
	}
	s.n += int64(binary.LittleEndian.Uint64(b))
	b = b[8:]
	for _, x := range s.sums() {
		if b, err = x.merge(b); err != nil {
			return err
		}
	}
	return nil
}

func (s *errorsOf) sums() []*exactSum {
	return []*exactSum{&s.absolute, &s.squared, &s.targets, &s.squares}
}

// quotient returns a/b, rounded once.
func quotient(a, b *big.Float) float64 {
	x, _ := new(big.Float).SetPrec(200).Quo(a, b).Float64()
	return x
}

func (s *errorsOf) count() *big.Float { return new(big.Float).SetInt64(s.n) }

func (s *errorsOf) mae() float64  { return quotient(s.absolute.float(), s.count()) }
func (s *errorsOf) rmse() float64 { return math.Sqrt(quotient(s.squared.float(), s.count())) }

// spread returns Σ(y-ȳ)², which is (n·Σy² - (Σy)²)/n, without rounding but that of the division.
func (s *errorsOf) spread() *big.Float {
	const exact = 5000 // bits
	sum := s.targets.float()
	a := new(big.Float).SetPrec(exact).Mul(s.count(), s.squares.float())
	b := new(big.Float).SetPrec(exact).Mul(sum, sum)
	return a.Quo(a.Sub(a, b), s.count())
}

func (s *errorsOf) r2() float64 {
	spread := s.spread()
	if spread.Sign() == 0 {
		return math.NaN()
	}
	return 1 - quotient(s.squared.float(), spread)
}

func (s *errorsOf) nmae() float64 {
	deviation := math.Sqrt(quotient(s.spread(), s.count()))
	if deviation == 0 {
		return math.NaN()
	}
	return s.mae() / deviation
}
