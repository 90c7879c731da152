export const pipelineRoutes = [] as const;
