/** Every scenario by its name on the command line. */
import type { ScenarioName } from '../options.js';
import { clusterCoreScenario } from './cluster-core.scenario.js';
import { clusterCostScenario, clusterThresholdScenario } from './cluster-cost.scenario.js';
import { clusterFailoverScenario } from './cluster-failover.scenario.js';
import { clusterLargeScenario } from './cluster-large.scenario.js';
import { clusterScalingScenario } from './cluster-scaling.scenario.js';
import { clusterSchedulerScenario } from './cluster-scheduler.scenario.js';
import { grpcScenario, tinyScenario, treesScenario } from './against-bare.scenario.js';
import { int8Scenario, mlpScenario, ocrScenario } from './against-limit.scenario.js';
import { latencyScenario } from './latency.scenario.js';
import { loadingScenario } from './loading.scenario.js';
import { manyScenario } from './many.scenario.js';
import { memoryScenario } from './memory.scenario.js';
import { objectiveScenario } from './objective.scenario.js';
import { openLoopScenario } from './open-loop.scenario.js';
import { overheadScenario } from './overhead.scenario.js';
import { overloadScenario } from './overload.scenario.js';
import { pacingScenario } from './pacing.scenario.js';
import { recoveryScenario } from './recovery.scenario.js';
import type { Scenario } from './scenario.js';

export const SCENARIOS: Readonly<Record<ScenarioName, Scenario>> = {
  mlp: mlpScenario,
  int8: int8Scenario,
  ocr: ocrScenario,
  tiny: tinyScenario,
  trees: treesScenario,
  grpc: grpcScenario,
  latency: latencyScenario,
  'open-loop': openLoopScenario,
  memory: memoryScenario,
  overload: overloadScenario,
  objective: objectiveScenario,
  pacing: pacingScenario,
  recovery: recoveryScenario,
  overhead: overheadScenario,
  many: manyScenario,
  loading: loadingScenario,
  'cluster-cost': clusterCostScenario,
  'cluster-threshold': clusterThresholdScenario,
  'cluster-large': clusterLargeScenario,
  'cluster-scaling': clusterScalingScenario,
  'cluster-core': clusterCoreScenario,
  'cluster-scheduler': clusterSchedulerScenario,
  'cluster-failover': clusterFailoverScenario,
};
